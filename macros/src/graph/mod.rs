//! `#[tensor_graph]`: a function that calls kernels, as ordinary Rust and as data.
//!
//! The body is compiled three times. Calls of kernels and graphs become calls of the tuned code, of references, and of functions that
//! record; everything else stays as it is. Types are therefore rustc's affair, in all three.
//!
//! | module | does |
//! |---|---|
//! | `signature` | arguments and results, with the names of dimensions |
//! | `body` | finds calls of kernels in the body |
//! | `shapes` | checks of fixed extents when the program is compiled |
//! | `emit` | the functions that are generated |

mod body;
mod emit;
pub(crate) mod shapes;
mod signature;

#[cfg(test)]
mod tests;

use proc_macro2::TokenStream;
use quote::quote;

use crate::diagnostics::{Diagnostics, parse_function};

/// Expands the attribute on a function.
pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let diagnostics = Diagnostics::new();
    let Some(function) = parse_function(&item, "tensor_graph", &diagnostics) else {
        let errors = diagnostics.finish();
        return quote!(#errors #item);
    };
    if !attribute.is_empty() {
        diagnostics.error(&attribute, "a graph has no options", "write `#[tensor_graph]`");
    }
    let graph = signature::graph(&function, &diagnostics);
    body::check(&function.block, &diagnostics);
    match diagnostics.finish() {
        None => emit::graph(&graph),
        Some(errors) => errors,
    }
}

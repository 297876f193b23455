//! `#[tensor_kernel]` and `#[tensor_fn]`: parse → check → emit.

mod ast;
mod check;
mod class;
mod emit;
mod methods;
mod parse;
mod types;

#[cfg(test)]
mod tests;

use proc_macro2::TokenStream;
use quote::quote;

use crate::diagnostics::{Diagnostics, parse_function};

/// Expands the attribute on a function.
pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let diagnostics = Diagnostics::new();
    if let Ok(syn::Item::Impl(item)) = syn::parse2(item.clone()) {
        return methods::expand(&attribute, item, diagnostics);
    }
    let Some(function) = parse_function(&item, "tensor_kernel", &diagnostics) else {
        let errors = diagnostics.finish();
        return quote!(#errors #item);
    };
    let mut kernel = parse::kernel(&attribute, &function, &diagnostics);
    check::check(&mut kernel, &diagnostics);
    match diagnostics.finish() {
        None => emit::kernel(&kernel),
        // Neither an enum nor an `impl` can stand among methods.
        Some(errors) if function.sig.receiver().is_some() => errors,
        Some(errors) => {
            let skeleton = emit::skeleton(&kernel);
            quote!(#errors #skeleton)
        }
    }
}

/// Expands `#[tensor_fn]` on a function.
pub(crate) fn expand_function(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let diagnostics = Diagnostics::new();
    let function = parse_function(&item, "tensor_fn", &diagnostics)
        .and_then(|function| parse::function(&attribute, &function, &diagnostics));
    let Some(mut function) = function else {
        let errors = diagnostics.finish();
        return quote!(#errors #item);
    };
    check::check_function(&mut function, &diagnostics);
    match diagnostics.finish() {
        None => emit::function(&function),
        Some(errors) => {
            let skeleton = emit::function_skeleton(&function);
            quote!(#errors #skeleton)
        }
    }
}

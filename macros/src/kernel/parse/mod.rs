//! From Rust's syntax to a [`Kernel`].
//!
//! Whatever is outside the kernel language is reported here, at the user's token, and becomes an
//! `Invalid` node, so that one run reports everything. Names, ranks and types are the checker's.

mod expression;
mod function;
mod options;
mod refused;
mod signature;
mod statement;

pub(crate) use function::function;

use proc_macro2::TokenStream;

use super::ast::Kernel;
use super::types::Types;
use crate::diagnostics::Diagnostics;

/// Parses a definition.
pub(crate) fn kernel(attribute: &TokenStream, item: &syn::ItemFn, diagnostics: &Diagnostics) -> Kernel {
    let options::Options { accuracy, multiplies_padding } = options::options(attribute, diagnostics);
    let before = diagnostics.count();
    let (parameters, returns) = signature::signature(&item.sig, diagnostics);
    let incomplete = diagnostics.count() > before;
    let (body, results) = statement::body(&item.block, diagnostics);
    Kernel {
        accuracy,
        multiplies_padding,
        attributes: item.attrs.clone(),
        visibility: item.vis.clone(),
        name: item.sig.ident.clone(),
        parameters,
        returns,
        incomplete,
        end: item.block.brace_token.span.close(),
        body,
        results,
        dims: Vec::new(),
        bindings: Vec::new(),
        types: Types::default(),
    }
}

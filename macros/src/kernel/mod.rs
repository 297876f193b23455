//! `#[tensor_kernel]`: parse → check → emit.

mod ast;
mod check;
mod emit;
mod parse;
mod types;

#[cfg(test)]
mod tests;

use proc_macro2::TokenStream;
use quote::quote;

use crate::diagnostics::Diagnostics;

/// Expands the attribute on a function.
pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let function = match syn::parse2::<syn::ItemFn>(item.clone()) {
        Ok(function) => function,
        Err(error) => {
            let error = error.to_compile_error();
            return quote!(#error #item);
        }
    };
    let diagnostics = Diagnostics::new();
    let mut kernel = parse::kernel(&attribute, &function, &diagnostics);
    check::check(&mut kernel, &diagnostics);
    match diagnostics.finish() {
        None => emit::kernel(&kernel),
        Some(errors) => {
            let skeleton = emit::skeleton(&kernel);
            quote!(#errors #skeleton)
        }
    }
}

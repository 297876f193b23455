//! A `#[tensor_fn]` as ordinary Rust and as calls that make values.
//!
//! | item | for |
//! |---|---|
//! | `fn NAME` | references and ordinary code |
//! | `enum NAME` | a namespace: an import of the function imports it, too |
//! | `NAME::__value` | what the function computes of values, for the kernels that call it |

use proc_macro2::TokenStream;
use quote::quote;

use super::{build, dtype, reference, rust_type};
use crate::kernel::ast::Function;
use crate::kernel::class;

/// The code for a `#[tensor_fn]` without errors: the function itself, and beside it the enum of its name, with what it
/// computes of values.
pub(crate) fn function(function: &Function) -> TokenStream {
    let (signature, attributes) = (function_signature(function), &function.attributes);
    let (body, value, depth) = (reference::body(function), value(function), depth(function));
    let (name, namespace) = (&function.name, function_namespace(function));
    quote! {
        #(#attributes)*
        #[inline]
        #[allow(unused_parens, unused_braces, clippy::all, clippy::pedantic, clippy::nursery)]
        #signature #body
        #namespace
        impl #name {
            #depth
            #value
        }
    }
}

/// The expansion of a `#[tensor_fn]` with errors.
pub(crate) fn function_skeleton(function: &Function) -> TokenStream {
    let (signature, name) = (function_signature(function), &function.name);
    let namespace = function_namespace(function);
    quote! {
        #[allow(unused_variables)]
        #signature { ::tilewright::__private::definition_has_errors() }
        #namespace
        impl #name {
            #[doc(hidden)]
            pub const __DEPTH: usize = 1;
            #[doc(hidden)]
            pub fn __value(
                _: &[::tilewright::__private::Value],
            ) -> ::tilewright::__private::Value {
                ::tilewright::__private::definition_has_errors()
            }
        }
    }
}

fn function_signature(function: &Function) -> TokenStream {
    let (visibility, name) = (&function.visibility, &function.name);
    let arguments = function.arguments.iter().map(|argument| {
        let (name, ty) = (&argument.name, rust_type(argument.ty, argument.ty_span));
        quote!(#name: #ty)
    });
    let result = rust_type(function.result, function.result_span);
    let generics = class::declared(&function.generics, None);
    quote!(#visibility fn #name #generics(#(#arguments),*) -> #result)
}

fn function_namespace(function: &Function) -> TokenStream {
    let (visibility, name) = (&function.visibility, &function.name);
    quote! {
        #[allow(non_camel_case_types)]
        #[doc(hidden)]
        #visibility enum #name {}
    }
}

/// How deep calls of functions are nested. Computing it shows rustc a function that calls itself, which no program
/// could hold.
fn depth(function: &Function) -> TokenStream {
    let callees = function.callees.iter();
    quote! {
        #[doc(hidden)]
        pub const __DEPTH: usize = 1 #(+ #callees::__DEPTH)*;
    }
}

/// `fn __value`: what a `#[tensor_fn]` computes of values.
fn value(function: &Function) -> TokenStream {
    let emitter = build::Emitter { types: &function.types, bindings: &function.bindings, knows_types: false };
    let names: Vec<_> = function.arguments.iter().map(|argument| &argument.name).collect();
    let arguments = function.arguments.iter().map(|argument| {
        let name = &argument.name;
        if argument.ty.is_parameter() {
            return quote_hygienic!(let #name = #name.clone(););
        }
        let dtype = dtype(argument.ty);
        quote_hygienic!(let #name = #name.of_type(#dtype);)
    });
    let body = emitter.block(&function.body);
    let body = if function.result.is_parameter() {
        body
    } else {
        let result = dtype(function.result);
        quote_hygienic!(#body.of_type(#result))
    };
    quote_hygienic! {
        #[doc(hidden)]
        #[allow(
            non_snake_case, unused_variables, unused_parens, unused_braces,
            clippy::all, clippy::pedantic, clippy::nursery
        )]
        pub fn __value(
            arguments: &[::tilewright::__private::Value],
        ) -> ::tilewright::__private::Value {
            let _ = Self::__DEPTH;
            let [#(#names),*] = arguments else { ::tilewright::__private::definition_has_errors() };
            #(#arguments)*
            #body
        }
    }
}

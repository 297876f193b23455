//! `#[tensor_fn]`: a function of scalars.

use proc_macro2::{Span, TokenStream};
use syn::spanned::Spanned;

use super::{expression, signature};
use crate::diagnostics::Diagnostics;
use crate::kernel::ast::{Argument, Function};
use crate::kernel::types::{ScalarType, Types, element_types};

/// Parses a function; `None` when its signature or its body has errors that leave nothing to check.
pub(crate) fn function(
    attribute: &TokenStream,
    item: &syn::ItemFn,
    diagnostics: &Diagnostics,
) -> Option<Function> {
    if !attribute.is_empty() {
        diagnostics.error(attribute, "`#[tensor_fn]` has no options", "write `#[tensor_fn]`");
    }
    signature::qualifiers(&item.sig, "`#[tensor_fn]`", diagnostics);
    let arguments: Vec<_> = item.sig.inputs.iter().map(|input| argument(input, diagnostics)).collect();
    let result = result(&item.sig, diagnostics);
    let body = expression::block(&item.block, diagnostics);
    let (result, result_span) = result?;
    Some(Function {
        attributes: item.attrs.clone(),
        visibility: item.vis.clone(),
        name: item.sig.ident.clone(),
        arguments: arguments.into_iter().collect::<Option<_>>()?,
        result,
        result_span,
        body: body?,
        bindings: Vec::new(),
        types: Types::default(),
        callees: Vec::new(),
    })
}

fn argument(input: &syn::FnArg, diagnostics: &Diagnostics) -> Option<Argument> {
    let typed = match input {
        syn::FnArg::Typed(typed) => typed,
        syn::FnArg::Receiver(receiver) => {
            diagnostics.error(receiver, "a `#[tensor_fn]` is no method", "write it outside of the `impl`");
            return None;
        }
    };
    if let Some(attribute) = typed.attrs.first() {
        diagnostics.error(attribute, "this is no attribute of a function's argument", "remove it");
    }
    let name = match typed.pat.as_ref() {
        syn::Pat::Ident(ident)
            if ident.by_ref.is_none() && ident.subpat.is_none() && ident.mutability.is_none() =>
        {
            ident.ident.clone()
        }
        other => {
            diagnostics.error(other, "an argument of a `#[tensor_fn]` is a plain name", "write `name: f32`");
            return None;
        }
    };
    let (ty, ty_span) = element(&typed.ty, diagnostics)?;
    Some(Argument { name, ty, ty_span })
}

fn result(signature: &syn::Signature, diagnostics: &Diagnostics) -> Option<(ScalarType, Span)> {
    match &signature.output {
        syn::ReturnType::Type(_, ty) => element(ty, diagnostics),
        syn::ReturnType::Default => {
            diagnostics.error(
                &signature.ident,
                format!("the function `{}` gives no value", signature.ident),
                "add the type of its result, as in `-> f32`",
            );
            None
        }
    }
}

/// An element type; reports every other.
fn element(ty: &syn::Type, diagnostics: &Diagnostics) -> Option<(ScalarType, Span)> {
    match signature::plain_name(ty).and_then(|name| ScalarType::from_name(&name)) {
        Some(scalar) if scalar.is_element() => Some((scalar, ty.span())),
        other => {
            let help = match other {
                Some(_) => "use `i64`, and convert in the kernel: `f(i as i64)`".to_owned(),
                None => format!("it computes with single numbers: {}", element_types()),
            };
            diagnostics.error(ty, "this is no type of a `#[tensor_fn]`", help);
            None
        }
    }
}

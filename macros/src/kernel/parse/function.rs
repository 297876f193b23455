//! `#[tensor_fn]`: a function of scalars.

use proc_macro2::{Span, TokenStream};
use syn::spanned::Spanned;

use super::{Context, expression, generics, signature};
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
    let generics = generics::generics(&item.sig.generics, "a `#[tensor_fn]`", diagnostics);
    let cx = &Context::new(diagnostics, &generics);
    signature::qualifiers(&item.sig, "`#[tensor_fn]`", cx);
    let arguments: Vec<_> = item.sig.inputs.iter().map(|input| argument(input, cx)).collect();
    let result = result(&item.sig, cx);
    let body = expression::block(&item.block, cx);
    let (result, result_span) = result?;
    Some(Function {
        attributes: item.attrs.clone(),
        visibility: item.vis.clone(),
        name: item.sig.ident.clone(),
        generics,
        arguments: arguments.into_iter().collect::<Option<_>>()?,
        result,
        result_span,
        body: body?,
        bindings: Vec::new(),
        types: Types::default(),
        callees: Vec::new(),
    })
}

fn argument(input: &syn::FnArg, cx: &Context<'_>) -> Option<Argument> {
    let typed = match input {
        syn::FnArg::Typed(typed) => typed,
        syn::FnArg::Receiver(receiver) => {
            cx.error(receiver, "a `#[tensor_fn]` is no method", "write it outside of the `impl`");
            return None;
        }
    };
    if let Some(attribute) = typed.attrs.first() {
        cx.error(attribute, "this is no attribute of a function's argument", "remove it");
    }
    let name = match typed.pat.as_ref() {
        syn::Pat::Ident(ident)
            if ident.by_ref.is_none() && ident.subpat.is_none() && ident.mutability.is_none() =>
        {
            ident.ident.clone()
        }
        other => {
            cx.error(other, "an argument of a `#[tensor_fn]` is a plain name", "write `name: f32`");
            return None;
        }
    };
    let (ty, ty_span) = element(&typed.ty, cx)?;
    Some(Argument { name, ty, ty_span })
}

fn result(signature: &syn::Signature, cx: &Context<'_>) -> Option<(ScalarType, Span)> {
    match &signature.output {
        syn::ReturnType::Type(_, ty) => element(ty, cx),
        syn::ReturnType::Default => {
            cx.error(
                &signature.ident,
                format!("the function `{}` gives no value", signature.ident),
                "add the type of its result, as in `-> f32`",
            );
            None
        }
    }
}

/// An element type; reports every other.
fn element(ty: &syn::Type, cx: &Context<'_>) -> Option<(ScalarType, Span)> {
    match signature::plain_name(ty).and_then(|name| cx.scalar(&name)) {
        Some(scalar) if scalar.is_element() => Some((scalar, ty.span())),
        other => {
            let help = match other {
                Some(_) => "use `i64`, and convert in the kernel: `f(i as i64)`".to_owned(),
                None => format!("it computes with single numbers: {}", element_types()),
            };
            cx.error(ty, "this is no type of a `#[tensor_fn]`", help);
            None
        }
    }
}

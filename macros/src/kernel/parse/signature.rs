//! Arguments, results and tensor types.

use proc_macro2::Span;
use syn::spanned::Spanned;

use super::{Context, expression};
use crate::diagnostics::Extent;
use crate::kernel::ast::{Dim, Expr, ExprKind, Name, Parameter, ParameterKind, TensorType};
use crate::kernel::types::{ScalarType, TypeVar, element_types};

const TENSOR_HELP: &str = "write an element type and then the dimensions: names, numbers or `{ expressions }`, \
                           such as `Tensor<f32, M, 64, { K + 1 }>`";
const ARGUMENT_HELP: &str = "an argument is `&Tensor<…>`, `&mut Tensor<…>`, `usize` (known when the kernel is \
                             compiled) or a scalar such as `f32`";

/// The arguments, and the types of the results.
pub(super) fn signature(signature: &syn::Signature, cx: &Context<'_>) -> (Vec<Parameter>, Vec<TensorType>) {
    qualifiers(signature, "a kernel", cx);
    let parameters = signature.inputs.iter().filter_map(|input| parameter(input, cx)).collect();
    (parameters, returns(&signature.output, cx))
}

/// Reports what stands around the name of a function and means nothing; `item` is a kernel or a `#[tensor_fn]`.
pub(super) fn qualifiers(signature: &syn::Signature, item: &str, cx: &Context<'_>) {
    if let Some(token) = &signature.constness {
        cx.error(token, format!("{item} cannot be `const`"), "remove `const`");
    }
    if let Some(token) = &signature.asyncness {
        cx.error(
            token,
            format!("{item} cannot be `async`"),
            "remove `async`: a call returns when it is done",
        );
    }
    if let Some(token) = &signature.unsafety {
        cx.error(token, format!("{item} cannot be `unsafe`"), "remove `unsafe`: every call is checked");
    }
    if let Some(abi) = &signature.abi {
        cx.error(abi, format!("{item} has no ABI of its own"), "remove `extern`");
    }
    if let Some(variadic) = &signature.variadic {
        cx.error(variadic, format!("{item} has a fixed number of arguments"), ARGUMENT_HELP);
    }
}

fn parameter(input: &syn::FnArg, cx: &Context<'_>) -> Option<Parameter> {
    let typed = match input {
        syn::FnArg::Typed(typed) => typed,
        syn::FnArg::Receiver(receiver) => {
            cx.error(receiver, "a kernel is no method", "pass each tensor as an argument of its own");
            return None;
        }
    };
    let is_constant = attributes(&typed.attrs, cx);
    let name = argument_name(&typed.pat, cx)?;
    let kind = parameter_kind(&typed.ty, cx);
    let can_be_constant =
        matches!(kind, ParameterKind::Tensor { mutable: false, .. } | ParameterKind::Invalid);
    if let Some(attribute) = is_constant.filter(|_| !can_be_constant) {
        cx.error(
            attribute,
            format!("`{name}` cannot be `#[constant]`"),
            "only a tensor that is read can: `#[constant] weight: &Tensor<…>`",
        );
    }
    Some(Parameter { name, is_constant: is_constant.is_some(), kind })
}

/// The mark `#[constant]`, when there is one; reports every other attribute.
fn attributes<'a>(attributes: &'a [syn::Attribute], cx: &Context<'_>) -> Option<&'a syn::Attribute> {
    let mut constant = None;
    for attribute in attributes {
        if !attribute.path().is_ident("constant") {
            cx.error(
                attribute,
                "this is no attribute of a kernel's argument",
                "remove it; `#[constant]` marks a tensor whose contents stay the same between calls",
            );
        } else if attribute.meta.require_path_only().is_err() {
            cx.error(attribute, "`constant` takes no options", "write `#[constant]`");
        } else if constant.replace(attribute).is_some() {
            cx.error(attribute, "the argument is `#[constant]` already", "remove one of the two");
        }
    }
    constant
}

fn argument_name(pattern: &syn::Pat, cx: &Context<'_>) -> Option<syn::Ident> {
    match pattern {
        syn::Pat::Ident(ident) if ident.by_ref.is_none() && ident.subpat.is_none() => {
            if let Some(token) = &ident.mutability {
                cx.error(
                    token,
                    format!("the argument `{}` cannot be `mut`", ident.ident),
                    "take `&mut Tensor<…>` to write a tensor in place, or copy a scalar: `let mut x = …;`",
                );
            }
            Some(ident.ident.clone())
        }
        other => {
            cx.error(other, "an argument of a kernel is a plain name", "write `name: type`");
            None
        }
    }
}

fn parameter_kind(ty: &syn::Type, cx: &Context<'_>) -> ParameterKind {
    match ty {
        syn::Type::Reference(reference) => {
            if let Some(lifetime) = &reference.lifetime {
                cx.error(lifetime, "tensors need no lifetime here", "write `&Tensor<…>`");
            }
            match tensor_type(&reference.elem, cx) {
                Some(ty) => ParameterKind::Tensor { ty, mutable: reference.mutability.is_some() },
                None => ParameterKind::Invalid,
            }
        }
        _ if is_tensor(ty) => {
            cx.error(
                ty,
                "a tensor argument is borrowed",
                "write `&Tensor<…>` to read it or `&mut Tensor<…>` to update it in place",
            );
            ParameterKind::Invalid
        }
        _ => match plain_name(ty).and_then(|name| cx.scalar(&name)) {
            Some(ScalarType::Usize) => ParameterKind::Size,
            Some(scalar) if scalar.is_element() => ParameterKind::Scalar(scalar),
            _ => {
                cx.error(ty, "this is no type of a kernel's argument", ARGUMENT_HELP);
                ParameterKind::Invalid
            }
        },
    }
}

fn returns(output: &syn::ReturnType, cx: &Context<'_>) -> Vec<TensorType> {
    match output {
        syn::ReturnType::Default => Vec::new(),
        syn::ReturnType::Type(_, ty) => match ty.as_ref() {
            syn::Type::Tuple(tuple) => tuple.elems.iter().filter_map(|ty| returned(ty, cx)).collect(),
            ty => returned(ty, cx).into_iter().collect(),
        },
    }
}

fn returned(ty: &syn::Type, cx: &Context<'_>) -> Option<TensorType> {
    if is_tensor(ty) {
        return tensor_type(ty, cx);
    }
    let help = match plain_name(ty).as_deref() {
        Some("Result" | "Option") => {
            "return the tensor itself; the call that is generated returns a `Result`"
        }
        _ => "return `Tensor<…>`, a tuple of them, or nothing; one number is a `Tensor<f32>`",
    };
    cx.error(ty, "a kernel returns tensors", help);
    None
}

/// Whether this is `Tensor` or `Tensor<…>`, by whatever path.
pub(super) fn is_tensor(ty: &syn::Type) -> bool {
    plain_name(ty).is_some_and(|name| name == "Tensor")
}

/// The last segment of a path.
pub(super) fn plain_name(ty: &syn::Type) -> Option<String> {
    match ty {
        syn::Type::Path(path) if path.qself.is_none() => {
            path.path.segments.last().map(|segment| segment.ident.to_string())
        }
        syn::Type::Paren(paren) => plain_name(&paren.elem),
        syn::Type::Group(group) => plain_name(&group.elem),
        _ => None,
    }
}

/// A scalar type by its name; reports what is none.
pub(super) fn scalar_type(ty: &syn::Type, cx: &Context<'_>) -> Option<ScalarType> {
    let scalar = plain_name(ty).and_then(|name| cx.scalar(&name));
    if scalar.is_none() {
        cx.error(
            ty,
            "this is no type of a scalar in a kernel",
            format!("use {}, or `usize` for indices", element_types()),
        );
    }
    scalar
}

/// `Tensor<T, dims…>`; reports everything that is wrong with it.
pub(super) fn tensor_type(ty: &syn::Type, cx: &Context<'_>) -> Option<TensorType> {
    let syn::Type::Path(path) = ty else {
        let help = match ty {
            syn::Type::Slice(_) => "write `&Tensor<f32, N>`",
            syn::Type::Array(_) => "write `&Tensor<f32, 64>`",
            _ => ARGUMENT_HELP,
        };
        cx.error(ty, "only tensors are borrowed", help);
        return None;
    };
    if !is_tensor(ty) {
        cx.error(ty, "only tensors are borrowed", "pass a scalar by value, such as `alpha: f32`");
        return None;
    }
    let segment = path.path.segments.last()?;
    let syn::PathArguments::AngleBracketed(arguments) = &segment.arguments else {
        cx.error(ty, "the tensor's element type and dimensions are missing", TENSOR_HELP);
        return None;
    };
    let mut arguments = arguments.args.iter();
    let (element, element_span) = element(ty, arguments.next(), cx)?;
    let dims: Vec<_> = arguments.map(|argument| dim(argument, cx)).collect();
    let dims = dims.into_iter().collect::<Option<_>>()?;
    let mut path = path.path.clone();
    if let Some(last) = path.segments.last_mut() {
        last.arguments = syn::PathArguments::None;
    }
    Some(TensorType { element, element_span, dims, path, extent: Extent::of(ty) })
}

fn element(
    whole: &syn::Type,
    argument: Option<&syn::GenericArgument>,
    cx: &Context<'_>,
) -> Option<(ScalarType, Span)> {
    let Some(argument) = argument else {
        cx.error(whole, "the tensor's element type and dimensions are missing", TENSOR_HELP);
        return None;
    };
    let element = match argument {
        syn::GenericArgument::Type(ty) => plain_name(ty).and_then(|name| cx.scalar(&name)),
        _ => None,
    };
    match element {
        Some(element) if element.is_element() => Some((element, argument.span())),
        _ => {
            cx.error(
                argument,
                "this is no element type",
                format!("the first parameter of `Tensor` is {}", element_types()),
            );
            None
        }
    }
}

fn dim(argument: &syn::GenericArgument, cx: &Context<'_>) -> Option<Dim> {
    match argument {
        syn::GenericArgument::Type(syn::Type::Path(path)) if path.path.get_ident().is_some() => {
            let ident = path.path.get_ident()?.clone();
            Some(Dim::Symbol(Name::new(&ident)))
        }
        syn::GenericArgument::Type(syn::Type::Path(path)) if is_constant_path(path) => {
            let kind = ExprKind::Constant(path.path.clone(), Some(ScalarType::Usize));
            let (span, extent) = (path.span(), Extent::of(path));
            Some(Dim::Computed(Box::new(Expr { kind, span, extent, ty: TypeVar::UNCHECKED })))
        }
        syn::GenericArgument::Const(syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(literal), .. })) => {
            match literal.base10_parse::<i64>() {
                Ok(extent) if extent > 0 => Some(Dim::Fixed(extent)),
                _ => {
                    cx.error(
                        literal,
                        "this is no size of a dimension",
                        "a fixed dimension is at least 1; a dimension that may be empty has a name",
                    );
                    None
                }
            }
        }
        syn::GenericArgument::Const(syn::Expr::Block(block)) => computed(block, cx),
        other => {
            cx.error(other, "this is no dimension", TENSOR_HELP);
            None
        }
    }
}

/// Whether a dimension is a constant by its path, such as `self::N` or `shapes::WIDTH`.
fn is_constant_path(path: &syn::TypePath) -> bool {
    path.qself.is_none()
        && path.path.segments.len() > 1
        && path.path.segments.iter().all(|segment| segment.arguments.is_none())
}

fn computed(block: &syn::ExprBlock, cx: &Context<'_>) -> Option<Dim> {
    match block.block.stmts.as_slice() {
        [syn::Stmt::Expr(expr, None)] if block.label.is_none() => {
            Some(Dim::Computed(Box::new(expression::expression(expr, cx))))
        }
        _ => {
            cx.error(
                block,
                "a computed dimension is one expression",
                "write `{ H - KH + 1 }`, with dimensions, `usize` arguments and whole numbers",
            );
            None
        }
    }
}

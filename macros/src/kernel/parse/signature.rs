//! Arguments, results and tensor types.

use proc_macro2::Span;
use syn::spanned::Spanned;

use super::expression;
use crate::diagnostics::{Diagnostics, Extent};
use crate::kernel::ast::{Dim, Expr, ExprKind, Name, Parameter, ParameterKind, TensorType};
use crate::kernel::types::{ScalarType, TypeVar, element_types};

const TENSOR_HELP: &str = "write an element type and then the dimensions: names, numbers or `{ expressions }`, \
                           such as `Tensor<f32, M, 64, { K + 1 }>`";
const ARGUMENT_HELP: &str = "an argument is `&Tensor<…>`, `&mut Tensor<…>`, `usize` (known when the kernel is \
                             compiled) or a scalar such as `f32`";

/// The arguments, and the types of the results.
pub(super) fn signature(
    signature: &syn::Signature,
    diagnostics: &Diagnostics,
) -> (Vec<Parameter>, Vec<TensorType>) {
    qualifiers(signature, "a kernel", diagnostics);
    let parameters = signature.inputs.iter().filter_map(|input| parameter(input, diagnostics)).collect();
    (parameters, returns(&signature.output, diagnostics))
}

/// Reports what stands around the name of a function and means nothing; `item` is a kernel or a `#[tensor_fn]`.
pub(super) fn qualifiers(signature: &syn::Signature, item: &str, diagnostics: &Diagnostics) {
    if let Some(token) = &signature.constness {
        diagnostics.error(token, format!("{item} cannot be `const`"), "remove `const`");
    }
    if let Some(token) = &signature.asyncness {
        diagnostics.error(
            token,
            format!("{item} cannot be `async`"),
            "remove `async`: a call returns when it is done",
        );
    }
    if let Some(token) = &signature.unsafety {
        diagnostics.error(
            token,
            format!("{item} cannot be `unsafe`"),
            "remove `unsafe`: every call is checked",
        );
    }
    if let Some(abi) = &signature.abi {
        diagnostics.error(abi, format!("{item} has no ABI of its own"), "remove `extern`");
    }
    if !signature.generics.params.is_empty() {
        diagnostics.error(
            &signature.generics.params,
            format!("{item} has no generic parameters"),
            "dimensions are named where they occur, as in `Tensor<f32, M, K>`, and element types are concrete",
        );
    }
    if let Some(clause) = &signature.generics.where_clause {
        diagnostics.error(clause, format!("{item} has no `where` clause"), "remove it");
    }
    if let Some(variadic) = &signature.variadic {
        diagnostics.error(variadic, format!("{item} has a fixed number of arguments"), ARGUMENT_HELP);
    }
}

fn parameter(input: &syn::FnArg, diagnostics: &Diagnostics) -> Option<Parameter> {
    let typed = match input {
        syn::FnArg::Typed(typed) => typed,
        syn::FnArg::Receiver(receiver) => {
            diagnostics.error(
                receiver,
                "a kernel is no method",
                "pass each tensor as an argument of its own",
            );
            return None;
        }
    };
    let is_constant = attributes(&typed.attrs, diagnostics);
    let name = argument_name(&typed.pat, diagnostics)?;
    let kind = parameter_kind(&typed.ty, diagnostics);
    let can_be_constant =
        matches!(kind, ParameterKind::Tensor { mutable: false, .. } | ParameterKind::Invalid);
    if let Some(attribute) = is_constant.filter(|_| !can_be_constant) {
        diagnostics.error(
            attribute,
            format!("`{name}` cannot be `#[constant]`"),
            "only a tensor that is read can: `#[constant] weight: &Tensor<…>`",
        );
    }
    Some(Parameter { name, is_constant: is_constant.is_some(), kind })
}

/// The mark `#[constant]`, when there is one; reports every other attribute.
fn attributes<'a>(attributes: &'a [syn::Attribute], diagnostics: &Diagnostics) -> Option<&'a syn::Attribute> {
    let mut constant = None;
    for attribute in attributes {
        if !attribute.path().is_ident("constant") {
            diagnostics.error(
                attribute,
                "this is no attribute of a kernel's argument",
                "remove it; `#[constant]` marks a tensor whose contents stay the same between calls",
            );
        } else if attribute.meta.require_path_only().is_err() {
            diagnostics.error(attribute, "`constant` takes no options", "write `#[constant]`");
        } else if constant.replace(attribute).is_some() {
            diagnostics.error(attribute, "the argument is `#[constant]` already", "remove one of the two");
        }
    }
    constant
}

fn argument_name(pattern: &syn::Pat, diagnostics: &Diagnostics) -> Option<syn::Ident> {
    match pattern {
        syn::Pat::Ident(ident) if ident.by_ref.is_none() && ident.subpat.is_none() => {
            if let Some(token) = &ident.mutability {
                diagnostics.error(
                    token,
                    format!("the argument `{}` cannot be `mut`", ident.ident),
                    "take `&mut Tensor<…>` to write a tensor in place, or copy a scalar: `let mut x = …;`",
                );
            }
            Some(ident.ident.clone())
        }
        other => {
            diagnostics.error(other, "an argument of a kernel is a plain name", "write `name: type`");
            None
        }
    }
}

fn parameter_kind(ty: &syn::Type, diagnostics: &Diagnostics) -> ParameterKind {
    match ty {
        syn::Type::Reference(reference) => {
            if let Some(lifetime) = &reference.lifetime {
                diagnostics.error(lifetime, "tensors need no lifetime here", "write `&Tensor<…>`");
            }
            match tensor_type(&reference.elem, diagnostics) {
                Some(ty) => ParameterKind::Tensor { ty, mutable: reference.mutability.is_some() },
                None => ParameterKind::Invalid,
            }
        }
        _ if is_tensor(ty) => {
            diagnostics.error(
                ty,
                "a tensor argument is borrowed",
                "write `&Tensor<…>` to read it or `&mut Tensor<…>` to update it in place",
            );
            ParameterKind::Invalid
        }
        _ => match plain_name(ty).and_then(|name| ScalarType::from_name(&name)) {
            Some(ScalarType::Usize) => ParameterKind::Size,
            Some(scalar) if scalar.is_element() => ParameterKind::Scalar(scalar),
            _ => {
                diagnostics.error(ty, "this is no type of a kernel's argument", ARGUMENT_HELP);
                ParameterKind::Invalid
            }
        },
    }
}

fn returns(output: &syn::ReturnType, diagnostics: &Diagnostics) -> Vec<TensorType> {
    match output {
        syn::ReturnType::Default => Vec::new(),
        syn::ReturnType::Type(_, ty) => match ty.as_ref() {
            syn::Type::Tuple(tuple) => {
                tuple.elems.iter().filter_map(|ty| returned(ty, diagnostics)).collect()
            }
            ty => returned(ty, diagnostics).into_iter().collect(),
        },
    }
}

fn returned(ty: &syn::Type, diagnostics: &Diagnostics) -> Option<TensorType> {
    if is_tensor(ty) {
        return tensor_type(ty, diagnostics);
    }
    let help = match plain_name(ty).as_deref() {
        Some("Result" | "Option") => {
            "return the tensor itself; the call that is generated returns a `Result`"
        }
        _ => "return `Tensor<…>`, a tuple of them, or nothing; one number is a `Tensor<f32, 1>`",
    };
    diagnostics.error(ty, "a kernel returns tensors", help);
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
pub(super) fn scalar_type(ty: &syn::Type, diagnostics: &Diagnostics) -> Option<ScalarType> {
    let scalar = plain_name(ty).and_then(|name| ScalarType::from_name(&name));
    if scalar.is_none() {
        diagnostics.error(
            ty,
            "this is no type of a scalar in a kernel",
            format!("use {}, or `usize` for indices", element_types()),
        );
    }
    scalar
}

/// `Tensor<T, dims…>`; reports everything that is wrong with it.
pub(super) fn tensor_type(ty: &syn::Type, diagnostics: &Diagnostics) -> Option<TensorType> {
    let syn::Type::Path(path) = ty else {
        let help = match ty {
            syn::Type::Slice(_) => "write `&Tensor<f32, N>`",
            syn::Type::Array(_) => "write `&Tensor<f32, 64>`",
            _ => ARGUMENT_HELP,
        };
        diagnostics.error(ty, "only tensors are borrowed", help);
        return None;
    };
    if !is_tensor(ty) {
        diagnostics.error(ty, "only tensors are borrowed", "pass a scalar by value, such as `alpha: f32`");
        return None;
    }
    let segment = path.path.segments.last()?;
    let syn::PathArguments::AngleBracketed(arguments) = &segment.arguments else {
        diagnostics.error(ty, "the tensor's element type and dimensions are missing", TENSOR_HELP);
        return None;
    };
    let mut arguments = arguments.args.iter();
    let (element, element_span) = element(ty, arguments.next(), diagnostics)?;
    let dims: Vec<_> = arguments.map(|argument| dim(argument, diagnostics)).collect();
    if dims.is_empty() {
        diagnostics.error(
            ty,
            "a tensor has at least one dimension",
            format!("write `Tensor<{element}, N>`, or `Tensor<{element}, 1>` for a single number"),
        );
        return None;
    }
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
    diagnostics: &Diagnostics,
) -> Option<(ScalarType, Span)> {
    let Some(argument) = argument else {
        diagnostics.error(whole, "the tensor's element type and dimensions are missing", TENSOR_HELP);
        return None;
    };
    let element = match argument {
        syn::GenericArgument::Type(ty) => plain_name(ty).and_then(|name| ScalarType::from_name(&name)),
        _ => None,
    };
    match element {
        Some(element) if element.is_element() => Some((element, argument.span())),
        _ => {
            diagnostics.error(
                argument,
                "this is no element type",
                format!("the first parameter of `Tensor` is {}", element_types()),
            );
            None
        }
    }
}

fn dim(argument: &syn::GenericArgument, diagnostics: &Diagnostics) -> Option<Dim> {
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
                    diagnostics.error(
                        literal,
                        "this is no size of a dimension",
                        "a fixed dimension is at least 1; a dimension that may be empty has a name",
                    );
                    None
                }
            }
        }
        syn::GenericArgument::Const(syn::Expr::Block(block)) => computed(block, diagnostics),
        other => {
            diagnostics.error(other, "this is no dimension", TENSOR_HELP);
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

fn computed(block: &syn::ExprBlock, diagnostics: &Diagnostics) -> Option<Dim> {
    match block.block.stmts.as_slice() {
        [syn::Stmt::Expr(expr, None)] if block.label.is_none() => {
            Some(Dim::Computed(Box::new(expression::expression(expr, diagnostics))))
        }
        _ => {
            diagnostics.error(
                block,
                "a computed dimension is one expression",
                "write `{ H - KH + 1 }`, with dimensions, `usize` arguments and whole numbers",
            );
            None
        }
    }
}

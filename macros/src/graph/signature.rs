//! Arguments and results of graphs.

use proc_macro2::{Ident, Span};
use quote::ToTokens;
use syn::ext::IdentExt;

use crate::diagnostics::Diagnostics;

/// A function with `#[tensor_graph]`.
pub(super) struct Graph {
    pub(super) attributes: Vec<syn::Attribute>,
    pub(super) visibility: syn::Visibility,
    pub(super) name: Ident,
    pub(super) arguments: Vec<Argument>,
    pub(super) results: Vec<Tensor>,
    /// The names of dimensions, in order of appearance among the arguments.
    pub(super) dims: Vec<Ident>,
    pub(super) block: syn::Block,
}

/// An argument.
pub(super) enum Argument {
    /// `name: &Tensor<f32, M, K>`: a tensor that a run is given.
    Tensor { name: Ident, form: Form, tensor: Box<Tensor> },
    /// Everything else: numbers, and what holds the weights.
    Other(Box<syn::PatType>),
}

/// In which form a run is given a tensor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `&Tensor<…>`: it is read.
    Read,
    /// `&mut Tensor<…>`: it is updated.
    Updated,
    /// `&mut [Tensor<…>]`: a list of tensors of one shape, which are updated.
    UpdatedList,
}

/// `Tensor<f32, M, K>`
pub(super) struct Tensor {
    /// `Tensor`, as the user wrote it, without its arguments.
    pub(super) path: syn::Path,
    pub(super) element: syn::Type,
    pub(super) dims: Vec<Dim>,
}

/// A dimension.
pub(super) enum Dim {
    /// `M`, of the arguments.
    Symbol(Ident),
    /// A number or an expression.
    Value(syn::Expr),
}

impl Dim {
    /// The dimension for messages.
    pub(super) fn text(&self) -> String {
        match self {
            Dim::Symbol(name) => name.unraw().to_string(),
            Dim::Value(value) => {
                let text = value.to_token_stream().to_string();
                text.trim_matches(['{', '}', ' ']).trim_end_matches("usize").to_owned()
            }
        }
    }
}

const TENSOR: &str = "write an element type and then the dimensions, such as `Tensor<f32, M, 64, { K + 1 }>`";

/// A function as a graph; reports what no graph has.
pub(super) fn graph(function: &syn::ItemFn, diagnostics: &Diagnostics) -> Graph {
    let signature = &function.sig;
    qualifiers(signature, diagnostics);
    let arguments: Vec<Argument> =
        signature.inputs.iter().filter_map(|input| argument(input, diagnostics)).collect();
    let mut dims: Vec<Ident> = Vec::new();
    for argument in &arguments {
        let Argument::Tensor { tensor, .. } = argument else { continue };
        for dim in &tensor.dims {
            if let Dim::Symbol(name) = dim
                && !dims.contains(name)
            {
                dims.push(name.clone());
            }
        }
    }
    let updates = arguments
        .iter()
        .any(|argument| matches!(argument, Argument::Tensor { form, .. } if *form != Form::Read));
    let results = results(&signature.output, &signature.ident, updates, diagnostics);
    for dim in results.iter().flat_map(|result| &result.dims) {
        if let Dim::Symbol(name) = dim
            && !dims.contains(name)
            && !is_number(&arguments, name)
        {
            let known = dims.iter().map(|dim| format!("`{dim}`")).collect::<Vec<_>>().join(", ");
            diagnostics.error(
                name,
                format!("the dimension `{name}` is not known: no argument has it"),
                format!(
                    "use one of the known dimensions ({known}), a number, or `{{ {name} }}` for a constant"
                ),
            );
        }
    }
    Graph {
        attributes: function.attrs.clone(),
        visibility: function.vis.clone(),
        name: signature.ident.clone(),
        arguments,
        results,
        dims,
        block: (*function.block).clone(),
    }
}

/// Whether an argument of this name can be an extent.
fn is_number(arguments: &[Argument], name: &Ident) -> bool {
    arguments.iter().any(|argument| match argument {
        Argument::Other(typed) => matches!(&*typed.pat, syn::Pat::Ident(pattern) if pattern.ident == *name),
        Argument::Tensor { .. } => false,
    })
}

fn qualifiers(signature: &syn::Signature, diagnostics: &Diagnostics) {
    let tokens: [(Option<&dyn ToTokens>, &str); 4] = [
        (signature.constness.as_ref().map(|token| token as &dyn ToTokens), "`const`"),
        (signature.asyncness.as_ref().map(|token| token as &dyn ToTokens), "`async`"),
        (signature.unsafety.as_ref().map(|token| token as &dyn ToTokens), "`unsafe`"),
        (signature.abi.as_ref().map(|token| token as &dyn ToTokens), "`extern`"),
    ];
    for (token, name) in tokens {
        if let Some(token) = token {
            diagnostics.error(
                token.to_token_stream(),
                format!("a graph cannot be {name}"),
                format!("remove {name}"),
            );
        }
    }
    if let Some(parameter) = signature.generics.params.first() {
        diagnostics.error(parameter, "a graph has no parameters of types", "write the types of its tensors");
    }
}

fn argument(input: &syn::FnArg, diagnostics: &Diagnostics) -> Option<Argument> {
    let typed = match input {
        syn::FnArg::Typed(typed) => typed,
        syn::FnArg::Receiver(receiver) => {
            let help = "take the value as an argument of its own: `fn encode(model: &Model, …)`";
            diagnostics.error(receiver, "a graph is no method", help);
            return None;
        }
    };
    let syn::Type::Reference(reference) = &*typed.ty else {
        if is_tensor(&typed.ty) {
            diagnostics.error(&typed.ty, "a tensor argument is borrowed", "write `&Tensor<…>`");
            return None;
        }
        return Some(Argument::Other(Box::new(typed.clone())));
    };
    let (form, ty) = match (&*reference.elem, reference.mutability) {
        (ty, None) if is_tensor(ty) => (Form::Read, ty),
        (ty, Some(_)) if is_tensor(ty) => (Form::Updated, ty),
        (syn::Type::Slice(list), Some(_)) if is_tensor(&list.elem) => (Form::UpdatedList, &*list.elem),
        _ => return Some(Argument::Other(Box::new(typed.clone()))),
    };
    let tensor = tensor(ty, diagnostics)?;
    match &*typed.pat {
        syn::Pat::Ident(pattern) if pattern.by_ref.is_none() && pattern.subpat.is_none() => {
            if let Some(token) = &pattern.mutability {
                diagnostics.error(token, "a tensor argument cannot be `mut`", "remove `mut`");
            }
            Some(Argument::Tensor { name: pattern.ident.clone(), form, tensor: Box::new(tensor) })
        }
        other => {
            diagnostics.error(
                other,
                "a tensor argument of a graph is a plain name",
                "write `name: &Tensor<…>`",
            );
            None
        }
    }
}

fn results(output: &syn::ReturnType, name: &Ident, updates: bool, diagnostics: &Diagnostics) -> Vec<Tensor> {
    let types: Vec<&syn::Type> = match output {
        syn::ReturnType::Type(_, ty) => match &**ty {
            syn::Type::Tuple(tuple) => tuple.elems.iter().collect(),
            ty => vec![ty],
        },
        syn::ReturnType::Default => Vec::new(),
    };
    if types.is_empty() && !updates {
        let help =
            "write `-> Tensor<…>`, or a tuple of them, or take a tensor to update: `x: &mut Tensor<…>`";
        diagnostics.error(name, "a graph returns tensors", help);
    }
    let result = |ty: &&syn::Type| {
        if is_tensor(ty) {
            return tensor(ty, diagnostics);
        }
        let help = "return `Tensor<…>` or a tuple of them; the function that is generated returns a `Result`";
        diagnostics.error(ty, "a graph returns tensors", help);
        None
    };
    types.iter().filter_map(result).collect()
}

/// Whether this is `Tensor<…>`, by whatever path.
fn is_tensor(ty: &syn::Type) -> bool {
    match ty {
        syn::Type::Path(path) => path.path.segments.last().is_some_and(|segment| segment.ident == "Tensor"),
        syn::Type::Paren(inner) => is_tensor(&inner.elem),
        syn::Type::Group(inner) => is_tensor(&inner.elem),
        _ => false,
    }
}

fn tensor(ty: &syn::Type, diagnostics: &Diagnostics) -> Option<Tensor> {
    let syn::Type::Path(syn::TypePath { path, .. }) = ty else { return None };
    let segment = path.segments.last()?;
    let syn::PathArguments::AngleBracketed(arguments) = &segment.arguments else {
        diagnostics.error(ty, "the tensor's element type and dimensions are missing", TENSOR);
        return None;
    };
    let mut arguments = arguments.args.iter();
    let Some(syn::GenericArgument::Type(element)) = arguments.next() else {
        diagnostics.error(ty, "the tensor's element type and dimensions are missing", TENSOR);
        return None;
    };
    let dims: Vec<Option<Dim>> = arguments.map(|argument| dim(argument, diagnostics)).collect();
    let mut path = path.clone();
    path.segments.last_mut()?.arguments = syn::PathArguments::None;
    Some(Tensor { path, element: element.clone(), dims: dims.into_iter().collect::<Option<_>>()? })
}

fn dim(argument: &syn::GenericArgument, diagnostics: &Diagnostics) -> Option<Dim> {
    match argument {
        syn::GenericArgument::Type(syn::Type::Path(path)) => match path.path.get_ident() {
            Some(name) => Some(Dim::Symbol(name.clone())),
            None => Some(Dim::Value(syn::Expr::Path(syn::ExprPath {
                attrs: Vec::new(),
                qself: None,
                path: path.path.clone(),
            }))),
        },
        syn::GenericArgument::Const(syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(number), .. })) => {
            // The number of elements is a `usize`, whatever it is compared with.
            let text = format!("{}usize", number.base10_digits());
            let number = syn::LitInt::new(&text, number.span());
            Some(Dim::Value(syn::Expr::Lit(syn::ExprLit { attrs: Vec::new(), lit: syn::Lit::Int(number) })))
        }
        syn::GenericArgument::Const(syn::Expr::Block(block)) => match &block.block.stmts[..] {
            [syn::Stmt::Expr(value, None)] => Some(Dim::Value(value.clone())),
            _ => {
                diagnostics.error(block, "a computed dimension is one expression", "write `{ H - 1 }`");
                None
            }
        },
        syn::GenericArgument::Const(value) => Some(Dim::Value(value.clone())),
        other => {
            diagnostics.error(other, "this is no dimension", TENSOR);
            None
        }
    }
}

/// A name of generated code.
pub(super) fn local(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

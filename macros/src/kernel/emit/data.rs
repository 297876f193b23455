//! The definition's signature as a constant.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};

use super::{dtype, local, location, text};
use crate::kernel::ast::{BindingKind, Dim, Expr, ExprKind, Kernel, Name, ParameterKind, TensorType};
use crate::kernel::class;
use crate::kernel::types::ScalarType;

/// The `KernelDefinition`. Functions `build` and `dynamic_reference` are in scope where it stands.
pub(super) fn definition(kernel: &Kernel) -> TokenStream {
    let name = &kernel.title;
    let location = location(kernel.name.span());
    let dims = kernel.dims.iter().map(|dim| text(&dim.name));
    let arguments = kernel.parameters.iter().map(|parameter| {
        let name = text(&parameter.name);
        match &parameter.kind {
            ParameterKind::Tensor { ty, mutable } => {
                let kind = match (mutable, parameter.is_constant) {
                    (true, _) => "InOut",
                    (false, true) => "Constant",
                    (false, false) => "Input",
                };
                tensor(kernel, &name, kind, ty)
            }
            ParameterKind::Size => specification(&name, "Size", ScalarType::Usize, &[]),
            ParameterKind::Scalar(ty) => specification(&name, "Scalar", *ty, &[]),
            ParameterKind::Invalid => unreachable!("a definition with errors is not emitted"),
        }
    });
    let passed = class::passed(&kernel.generics);
    let outputs = kernel.results.iter().zip(&kernel.returns);
    let outputs = outputs.map(|(name, ty)| tensor(kernel, &name.text(), "Output", ty));
    quote! {
        ::tilewright::__private::KernelDefinition {
            name: #name,
            module: ::tilewright::__private::module_path!(),
            location: #location,
            dims: &[#(#dims),*],
            parameters: const { &[#(#arguments,)* #(#outputs,)*] },
            build: build #passed,
            reference: dynamic_reference #passed,
        }
    }
}

fn tensor(kernel: &Kernel, name: &str, kind: &str, ty: &TensorType) -> TokenStream {
    let dims: Vec<_> = ty.dims.iter().map(|dim| dimension(kernel, dim)).collect();
    specification(name, kind, ty.element, &dims)
}

fn specification(name: &str, kind: &str, ty: ScalarType, dims: &[TokenStream]) -> TokenStream {
    let (kind, dtype) = (Ident::new(kind, Span::call_site()), dtype(ty));
    quote! {
        ::tilewright::__private::ParameterSpec {
            name: #name,
            kind: ::tilewright::__private::ParameterKind::#kind,
            dtype: #dtype,
            dims: &[#(#dims),*],
        }
    }
}

fn dimension(kernel: &Kernel, dim: &Dim) -> TokenStream {
    match dim {
        Dim::Symbol(name) => {
            let position = position(kernel, name);
            quote!(::tilewright::__private::DimSpec::Symbol(#position))
        }
        Dim::Fixed(extent) => quote!(::tilewright::__private::DimSpec::Fixed(#extent)),
        Dim::Computed(expr) => {
            let (value, text, dims) = (checked(kernel, expr), dim.text(), local("dims"));
            quote!(::tilewright::__private::DimSpec::Computed(|#dims| #value, #text))
        }
    }
}

fn position(kernel: &Kernel, name: &Name) -> usize {
    match name.binding.map(|id| &kernel.bindings[id.0].kind) {
        Some(BindingKind::Dim(position)) => *position,
        _ => unreachable!("dimensions of a checked definition are resolved"),
    }
}

/// A dimension's value in checked arithmetic, an `Option`, inside a closure over `dims`.
fn checked(kernel: &Kernel, expr: &Expr) -> TokenStream {
    match &expr.kind {
        ExprKind::Int(_, value) => quote!(::tilewright::__private::Some(#value)),
        ExprKind::Constant(path, _) => {
            quote_spanned!(expr.span=> ::tilewright::__private::dimension::constant(#path))
        }
        ExprKind::Name(name) => {
            let (dims, position) = (local("dims"), position(kernel, name));
            quote!(::tilewright::__private::Some(#dims[#position]))
        }
        ExprKind::Paren(inner) => checked(kernel, inner),
        ExprKind::Binary(op, left, right) => {
            let (left, right) = (checked(kernel, left), checked(kernel, right));
            let function = Ident::new(op.op().scalar_function(), Span::call_site());
            quote!(::tilewright::__private::dimension::#function(#left, #right))
        }
        ExprKind::Call(method, receiver, arguments) => {
            let (left, right) = (checked(kernel, receiver), checked(kernel, &arguments[0]));
            let function = Ident::new(method.name(), Span::call_site());
            quote!(::tilewright::__private::dimension::#function(#left, #right))
        }
        _ => unreachable!("other forms of dimensions are refused"),
    }
}

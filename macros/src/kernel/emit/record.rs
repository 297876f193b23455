//! A call of the kernel as an entry in a graph.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::{conditions, local, rust_type};
use crate::graph::shapes;
use crate::kernel::ast::{BindingKind, Dim, Kernel, Parameter, ParameterKind, TensorType};
use crate::kernel::class;

/// `NAME::__record`: adds a call to the graph that is recorded.
pub(super) fn record(kernel: &Kernel) -> TokenStream {
    let (signature, call, namespace) =
        (signature(kernel, &local_name("__record")), local("call"), &kernel.namespace);
    let passed = class::passed(&kernel.generics);
    let arguments = kernel.parameters.iter().map(|parameter| {
        let name = &parameter.name;
        match &parameter.kind {
            ParameterKind::Tensor { mutable: true, .. } => quote!(#call.updated(#name);),
            ParameterKind::Tensor { ty, .. } => {
                let (element, rank) = (rust_type(ty.element, ty.element_span), ty.dims.len());
                quote!(#call.tensor::<#element, #rank>(#name)?;)
            }
            ParameterKind::Size => quote!(#call.size(#name);),
            ParameterKind::Scalar(_) | ParameterKind::Invalid => quote!(#call.scalar(#name);),
        }
    });
    let shapes = shapes::constant(&shapes_of(kernel));
    let results = (0..kernel.returns.len()).map(|position| quote!(results.get(#position)));
    let results: Vec<TokenStream> = results.collect();
    let results = match &results[..] {
        [one] => one.clone(),
        results => quote!((#(#results),*)),
    };
    let is_updated =
        |parameter: &&Parameter| matches!(parameter.kind, ParameterKind::Tensor { mutable: true, .. });
    let updates = kernel.parameters.iter().filter(is_updated).enumerate().map(|(position, parameter)| {
        let name = &parameter.name;
        quote!(*#name = results.updated(#position);)
    });
    quote! {
        #[doc(hidden)]
        #[allow(unused_variables, clippy::too_many_arguments)]
        pub #signature {
            let mut #call = ::tilewright::__private::graph::CallRecorder::new(#namespace::kernel #passed());
            #(#arguments)*
            let results = #call.finish()?;
            #(#updates)*
            ::tilewright::__private::Ok(#results)
        }
        #shapes
    }
}

/// The signature in numbers.
fn shapes_of(kernel: &Kernel) -> Vec<Vec<i64>> {
    let extent = |dim: &Dim| match dim {
        Dim::Symbol(name) => match name.binding.map(|id| &kernel.bindings[id.0].kind) {
            Some(BindingKind::Dim(position)) => -1 - *position as i64,
            _ => shapes::UNKNOWN,
        },
        Dim::Fixed(extent) => *extent,
        Dim::Computed(_) => shapes::UNKNOWN,
    };
    let shape = |parameter: &Parameter| match &parameter.kind {
        ParameterKind::Tensor { ty, .. } => ty.dims.iter().map(extent).collect(),
        _ => Vec::new(),
    };
    kernel.parameters.iter().map(shape).collect()
}

/// `NAME_record` for a kernel that belongs to a type.
pub(super) fn forward(kernel: &Kernel) -> TokenStream {
    let (visibility, namespace, conditions) = (&kernel.visibility, &kernel.namespace, conditions(kernel));
    let signature = signature(kernel, &format_ident!("{}_record", kernel.name));
    let arguments = kernel.parameters.iter().map(|parameter| &parameter.name);
    quote! {
        #(#conditions)*
        #[doc(hidden)]
        #[allow(dead_code, clippy::too_many_arguments)]
        #visibility #signature { #namespace::__record(#(#arguments),*) }
    }
}

fn local_name(name: &str) -> Ident {
    Ident::new(name, proc_macro2::Span::call_site())
}

fn signature(kernel: &Kernel, name: &Ident) -> TokenStream {
    let of = |ty: &TensorType| (rust_type(ty.element, ty.element_span), ty.dims.len());
    let mut has_tensors = false;
    let arguments: Vec<TokenStream> = kernel
        .parameters
        .iter()
        .map(|parameter| {
            let name = &parameter.name;
            match &parameter.kind {
                ParameterKind::Tensor { ty, mutable: true } => {
                    let (element, rank) = of(ty);
                    quote!(#name: &mut ::tilewright::__private::graph::Traced<#element, #rank>)
                }
                ParameterKind::Tensor { ty, mutable: false } => {
                    has_tensors = true;
                    let (element, rank) = of(ty);
                    quote! {
                        #name: impl ::tilewright::__private::Into<
                            ::tilewright::__private::graph::Operand<'t, #element, #rank>,
                        >
                    }
                }
                ParameterKind::Size => {
                    quote!(#name: impl ::tilewright::__private::Into<::tilewright::__private::graph::Dim>)
                }
                ParameterKind::Scalar(ty) => {
                    let ty = rust_type(*ty, name.span());
                    quote!(#name: #ty)
                }
                ParameterKind::Invalid => quote!(#name: impl ::tilewright::__private::Sized),
            }
        })
        .collect();
    let returned = kernel.returns.iter().map(|ty| {
        let (element, rank) = of(ty);
        quote!(::tilewright::__private::graph::Traced<#element, #rank>)
    });
    let returned: Vec<TokenStream> = returned.collect();
    let returned = match &returned[..] {
        [one] => one.clone(),
        returned => quote!((#(#returned),*)),
    };
    let generics = class::declared(&kernel.generics, has_tensors.then(|| quote!('t)));
    quote! {
        fn #name #generics(#(#arguments),*)
            -> ::tilewright::__private::Result<#returned, ::tilewright::__private::Error>
    }
}

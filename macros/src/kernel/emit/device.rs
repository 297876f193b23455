//! The calls on a device: `NAME::on` and `NAME::on_into`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};

use super::call::{has_outputs, output_name};
use super::{conditions, local, numbered, rust_type};
use crate::kernel::ast::{Kernel, ParameterKind, TensorType};
use crate::kernel::class;

/// The functions that are generated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Results are made in the memory of the device.
    Returned,
    /// The caller owns the results.
    Passed,
}

const ON_DOC: &str = "Runs the tuned kernel on a device, with tensors in its memory, where the results stay.";
const INTO_DOC: &str =
    "Runs the tuned kernel on a device and writes the results into tensors of the caller's in its memory.";

/// `NAME::on` and `NAME::on_into`.
pub(super) fn calls(kernel: &Kernel) -> TokenStream {
    let on = call(kernel, Form::Returned);
    let into = has_outputs(kernel).then(|| call(kernel, Form::Passed));
    quote!(#on #into)
}

/// The same functions of a definition with errors.
pub(super) fn calls_without_body(kernel: &Kernel) -> TokenStream {
    let function = |form| {
        let signature = signature(kernel, &name(kernel, form), form);
        quote! {
            /// The definition has errors.
            #[allow(unused_variables, clippy::too_many_arguments)]
            pub #signature { ::tilewright::__private::definition_has_errors() }
        }
    };
    let on = function(Form::Returned);
    let into = has_outputs(kernel).then(|| function(Form::Passed));
    quote!(#on #into)
}

/// `NAME_on` and `NAME_on_into` for a kernel that belongs to a type: the functions of its namespace.
pub(super) fn forwards(kernel: &Kernel) -> TokenStream {
    let (namespace, visibility, conditions) = (&kernel.namespace, &kernel.visibility, conditions(kernel));
    let device = local("device");
    let arguments: Vec<_> = kernel.parameters.iter().map(|parameter| &parameter.name).collect();
    let results: Vec<_> = kernel.results.iter().enumerate().collect();
    let results = results.iter().map(|(position, name)| output_name(kernel, *position, &name.ident));
    let on = signature(kernel, &format_ident!("{}_on", kernel.name), Form::Returned);
    let into = has_outputs(kernel).then(|| {
        let into = signature(kernel, &format_ident!("{}_on_into", kernel.name), Form::Passed);
        quote! {
            #[doc = #INTO_DOC]
            ///
            /// # Errors
            /// As the call itself; the results' shapes are checked too.
            #(#conditions)*
            #[allow(clippy::too_many_arguments)]
            #visibility #into { #namespace::on_into(#device, #(#arguments,)* #(#results),*) }
        }
    });
    quote! {
        #[doc = #ON_DOC]
        ///
        /// # Errors
        /// As the call itself, and when a tensor is in the memory of another device, or the device fails.
        #(#conditions)*
        #[allow(clippy::too_many_arguments)]
        #visibility #on { #namespace::on(#device, #(#arguments),*) }
        #into
    }
}

fn name(kernel: &Kernel, form: Form) -> Ident {
    let name = match form {
        Form::Returned => "on",
        Form::Passed => "on_into",
    };
    Ident::new(name, kernel.name.span())
}

fn call(kernel: &Kernel, form: Form) -> TokenStream {
    let signature = signature(kernel, &name(kernel, form), form);
    let (prepare, run) = (prepare(kernel), run(kernel));
    let (doc, results, result) = match form {
        Form::Returned => (ON_DOC, allocate(kernel), result(kernel)),
        Form::Passed => (INTO_DOC, check_outputs(kernel), quote!(())),
    };
    quote! {
        #[doc = #doc]
        ///
        /// # Errors
        /// As the call itself, and when a tensor is in the memory of another device, or the device fails.
        #[allow(clippy::too_many_arguments)]
        pub #signature {
            #prepare
            #results
            #run
            ::tilewright::__private::Ok(#result)
        }
    }
}

fn signature(kernel: &Kernel, name: &Ident, form: Form) -> TokenStream {
    let device = local("device");
    let arguments = kernel.parameters.iter().map(|parameter| {
        let name = &parameter.name;
        match &parameter.kind {
            ParameterKind::Tensor { ty, mutable } => argument(name, ty, *mutable),
            ParameterKind::Size => quote!(#name: usize),
            ParameterKind::Scalar(ty) => {
                let ty = rust_type(*ty, name.span());
                quote!(#name: #ty)
            }
            ParameterKind::Invalid => quote!(#name: impl ::tilewright::__private::Sized),
        }
    });
    let outputs = kernel.results.iter().zip(&kernel.returns).enumerate();
    let passed: Vec<_> = match form {
        Form::Returned => Vec::new(),
        Form::Passed => outputs
            .map(|(position, (name, ty))| argument(&output_name(kernel, position, &name.ident), ty, true))
            .collect(),
    };
    let returned: Vec<_> = kernel.returns.iter().map(tensor).collect();
    let returned = match (form, returned.as_slice()) {
        (Form::Passed, _) => quote!(()),
        (Form::Returned, [one]) => quote!(#one),
        (Form::Returned, several) => quote!((#(#several),*)),
    };
    let has_views = !passed.is_empty()
        || kernel.parameters.iter().any(|parameter| matches!(parameter.kind, ParameterKind::Tensor { .. }));
    let generics = class::declared(&kernel.generics, has_views.then(|| quote!('t)));
    quote! {
        fn #name #generics(#device: &::tilewright::__private::DeviceHandle, #(#arguments,)* #(#passed,)*)
            -> ::tilewright::__private::Result<#returned, ::tilewright::__private::Error>
    }
}

fn argument(name: &Ident, ty: &TensorType, mutable: bool) -> TokenStream {
    let (element, rank) = (rust_type(ty.element, ty.element_span), ty.dims.len());
    let role = Ident::new(if mutable { "DeviceWrite" } else { "DeviceRead" }, Span::call_site());
    quote!(#name: impl ::tilewright::__private::#role<'t, #element, #rank>)
}

fn tensor(ty: &TensorType) -> TokenStream {
    let (element, rank) = (rust_type(ty.element, ty.element_span), ty.dims.len());
    quote!(::tilewright::__private::DeviceTensor<#element, #rank>)
}

/// Converts the arguments to views and infers the dimensions from their shapes.
fn prepare(kernel: &Kernel) -> TokenStream {
    let (dims, entry) = (local("dims"), local("kernel"));
    let (namespace, passed) = (&kernel.namespace, class::passed(&kernel.generics));
    let (mut views, mut shapes, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
    for parameter in &kernel.parameters {
        let name = &parameter.name;
        match &parameter.kind {
            ParameterKind::Tensor { mutable, .. } => {
                views.push(match mutable {
                    false => quote!(let #name = ::tilewright::__private::DeviceRead::into_view(#name);),
                    true => {
                        quote!(let mut #name = ::tilewright::__private::DeviceWrite::into_view_mut(#name);)
                    }
                });
                shapes.push(quote!(&#name.shape()));
            }
            ParameterKind::Size => sizes.push(name),
            _ => {}
        }
    }
    quote! {
        #(#views)*
        let #entry = #namespace::kernel #passed();
        let #dims = ::tilewright::__private::definition(#entry).infer(&[#(#shapes),*], &[#(#sizes),*])?;
        #namespace::__check_constants(&#dims)?;
    }
}

/// Makes the results `output_0`, …, and views `view_0`, … of them.
fn allocate(kernel: &Kernel) -> TokenStream {
    let (dims, entry, device) = (local("dims"), local("kernel"), local("device"));
    let outputs = kernel.returns.iter().enumerate().map(|(position, ty)| {
        let (output, view, rank) = (numbered("output", position), numbered("view", position), ty.dims.len());
        let element = rust_type(ty.element, ty.element_span);
        quote! {
            let mut #output = ::tilewright::__private::allocate_on::<#element, #rank>(
                #device, ::tilewright::__private::definition(#entry), #position, &#dims,
            )?;
            let mut #view = #output.view_mut();
        }
    });
    quote!(#(#outputs)*)
}

/// Converts the result tensors of the caller's to views `view_0`, … and checks their shapes.
fn check_outputs(kernel: &Kernel) -> TokenStream {
    let (dims, entry) = (local("dims"), local("kernel"));
    let outputs = kernel.results.iter().enumerate().map(|(position, name)| {
        let (view, name) = (numbered("view", position), output_name(kernel, position, &name.ident));
        quote! {
            let mut #view = ::tilewright::__private::DeviceWrite::into_view_mut(#name);
            ::tilewright::__private::definition(#entry).check_output(#position, &#view.shape(), &#dims)?;
        }
    });
    quote!(#(#outputs)*)
}

/// Runs the tuned kernel on the arguments and `view_0`, ….
fn run(kernel: &Kernel) -> TokenStream {
    let (dims, entry, device) = (local("dims"), local("kernel"), local("device"));
    let (mut scalars, mut buffers) = (Vec::new(), Vec::new());
    for parameter in &kernel.parameters {
        let name = &parameter.name;
        match &parameter.kind {
            ParameterKind::Tensor { .. } => buffers.push(quote!(#name.argument())),
            ParameterKind::Scalar(_) => {
                scalars.push(quote!(::tilewright::__private::scalar_constant(#name)));
            }
            ParameterKind::Size | ParameterKind::Invalid => {}
        }
    }
    for position in 0..kernel.results.len() {
        let view = numbered("view", position);
        buffers.push(quote!(#view.argument()));
    }
    quote!(#entry.run_on(#device.id(), &#dims, &[#(#scalars),*], &mut [#(#buffers),*])?;)
}

/// `output_0`, or a tuple.
fn result(kernel: &Kernel) -> TokenStream {
    let outputs: Vec<_> = (0..kernel.returns.len()).map(|position| numbered("output", position)).collect();
    match outputs.as_slice() {
        [output] => quote!(#output),
        outputs => quote!((#(#outputs),*)),
    }
}

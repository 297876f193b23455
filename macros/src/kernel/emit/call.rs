//! The functions that a user calls.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use tilewright_vocabulary::{BinaryOp, UnaryOp};

use super::{conditions, lints, local, numbered, reference, rust_type, text};
use crate::kernel::ast::{Kernel, ParameterKind, TensorType};
use crate::kernel::class;

/// `fn NAME`: checks shapes, allocates the results, runs the tuned kernel.
pub(super) fn tuned(kernel: &Kernel) -> TokenStream {
    let signature = signature(kernel, &kernel.name, &Outputs::Returned);
    let (visibility, attributes) = (&kernel.visibility, &kernel.attributes);
    let doc = errors_doc(kernel);
    let (prepare, allocate, result) = (prepare(kernel), allocate(kernel), result(kernel));
    let run = run(kernel);
    quote! {
        #(#attributes)*
        #[doc = #doc]
        #[allow(clippy::too_many_arguments)]
        #visibility #signature {
            #prepare
            #allocate
            #run
            ::tilewright::__private::Ok(#result)
        }
    }
}

/// `NAME::call_into`: as the call, with results that the caller owns.
pub(super) fn call_into(kernel: &Kernel) -> Option<TokenStream> {
    if kernel.returns.is_empty() {
        return None;
    }
    let signature = signature(kernel, &Ident::new("call_into", kernel.name.span()), &Outputs::Passed);
    let (prepare, run) = (prepare(kernel), run(kernel));
    let check = check_outputs(kernel);
    Some(quote! {
        /// Runs the tuned kernel and writes the results into tensors of the caller's.
        ///
        /// # Errors
        /// As the call itself; the results' shapes are checked too.
        #[allow(clippy::too_many_arguments)]
        pub #signature {
            #prepare
            #check
            #run
            ::tilewright::__private::Ok(())
        }
    })
}

/// `NAME::reference`: the definition itself, as ordinary Rust.
pub(super) fn reference(kernel: &Kernel) -> TokenStream {
    let signature = signature(kernel, &Ident::new("reference", kernel.name.span()), &Outputs::Returned);
    let (prepare, allocate, result) = (prepare(kernel), allocate(kernel), result(kernel));
    let dims = local("dims");
    let arguments = kernel.parameters.iter().map(|parameter| {
        let name = &parameter.name;
        let text = text(name);
        match &parameter.kind {
            ParameterKind::Tensor { mutable: false, .. } => {
                quote!(::tilewright::__private::read(#text, &#name))
            }
            ParameterKind::Tensor { .. } => quote!(::tilewright::__private::write(#text, &mut #name)),
            _ => quote!(#name),
        }
    });
    let arguments = kernel.parameters.iter().zip(arguments);
    let arguments = arguments.filter(|(parameter, _)| !matches!(parameter.kind, ParameterKind::Size));
    let arguments = arguments.map(|(_, argument)| argument);
    let outputs = kernel.results.iter().enumerate().map(|(position, name)| {
        let (view, text) = (numbered("view", position), name.text());
        quote!(::tilewright::__private::write(#text, &mut #view))
    });
    let (numerics, passed) = (numerics_of_reference(), class::passed(&kernel.generics));
    quote! {
        /// Runs the definition as ordinary Rust, with the loops as they are written. Results of the tuned kernel are
        /// compared with its results.
        ///
        /// # Numerics
        #[doc = #numerics]
        ///
        /// # Errors
        /// When a shape does not fit, or an index is out of bounds.
        #[allow(clippy::too_many_arguments)]
        pub #signature {
            #prepare
            #allocate
            Self::__loops #passed(&#dims, #(#arguments,)* #(#outputs,)*)?;
            ::tilewright::__private::Ok(#result)
        }
    }
}

/// How far functions in a reference are from those of Rust's floats. Rust promises no bound of its own; those of the usual
/// libraries are off by less than one unit in the last place.
fn numerics_of_reference() -> String {
    let unary = UnaryOp::ALL.iter().map(|op| (op.text(), op.error_bound()));
    let binary = BinaryOp::ALL.iter().map(|op| (op.text(), op.error_bound()));
    let bounds = unary
        .chain(binary)
        .filter_map(|(name, bound)| Some(format!("`{name}` {}, {}", bound?.single, bound?.double)));
    format!(
        "Operators are those of Rust, except that integers wrap and that an integer division by zero gives zero. Functions of \
         floats, such as `sin`, are the expansions that compiled kernels execute, too. Their error is at most this number of \
         units in the last place, in `f32` and in `f64`: {}. A function of `f32` or `f64` in Rust's library may differ by one \
         more unit. `f16` and `bf16` are computed in `f32` and rounded.",
        bounds.collect::<Vec<_>>().join("; "),
    )
}

/// `NAME_reference`, `NAME_into` and `NAME_kernel` for a kernel that belongs to a type: the functions of its namespace.
pub(super) fn forwards(kernel: &Kernel) -> TokenStream {
    let (namespace, visibility, conditions) = (&kernel.namespace, &kernel.visibility, conditions(kernel));
    let passed = class::passed(&kernel.generics);
    let named = |suffix: &str| format_ident!("{}_{suffix}", kernel.name);
    let arguments: Vec<_> = kernel.parameters.iter().map(|parameter| &parameter.name).collect();
    let reference = signature(kernel, &named("reference"), &Outputs::Returned);
    let into = has_outputs(kernel).then(|| {
        let into = signature(kernel, &named("into"), &Outputs::Passed);
        let results = kernel.results.iter().enumerate();
        let results = results.map(|(position, name)| output_name(kernel, position, &name.ident));
        quote! {
            /// Runs the tuned kernel and writes the results into tensors of the caller's.
            ///
            /// # Errors
            /// As the call itself; the results' shapes are checked too.
            #(#conditions)*
            #[allow(clippy::too_many_arguments)]
            #visibility #into { #namespace::call_into(#(#arguments,)* #(#results),*) }
        }
    });
    let (kernel_name, generics) = (named("kernel"), class::declared(&kernel.generics, None));
    quote! {
        /// Runs the definition as ordinary Rust, with the loops as they are written. Results of the tuned kernel are compared with its
        /// results.
        ///
        /// # Errors
        /// When a shape does not fit, or an index is out of bounds.
        #(#conditions)*
        #[allow(clippy::too_many_arguments)]
        #visibility #reference { #namespace::reference(#(#arguments),*) }
        #into
        /// The kernel, for tuning it and for looking at it.
        #(#conditions)*
        #visibility fn #kernel_name #generics() -> &'static ::tilewright::__private::Kernel {
            #namespace::kernel #passed()
        }
    }
}

/// Whether `call_into` exists.
pub(super) fn has_outputs(kernel: &Kernel) -> bool {
    !kernel.returns.is_empty() && kernel.returns.len() == kernel.results.len()
}

/// The reference over untyped arguments, for the tuner.
pub(super) fn dynamic_reference(kernel: &Kernel) -> TokenStream {
    let (dims, scalars, buffers) = (local("dims"), local("scalars"), local("buffers"));
    let tensor = |ty: &TensorType, open: &str| {
        let (open, element) = (Ident::new(open, Span::call_site()), rust_type(ty.element, ty.element_span));
        let rank = ty.dims.len();
        quote!(#buffers.#open::<#element, #rank>()?)
    };
    let mut position = 0usize;
    let mut arguments = Vec::new();
    for parameter in &kernel.parameters {
        match &parameter.kind {
            ParameterKind::Tensor { ty, mutable: false } => arguments.push(tensor(ty, "read")),
            ParameterKind::Tensor { ty, mutable: true } => arguments.push(tensor(ty, "write")),
            ParameterKind::Scalar(ty) => {
                let ty = rust_type(*ty, parameter.name.span());
                arguments.push(quote!(::tilewright::__private::scalar::<#ty>(#scalars, #position)?));
                position += 1;
            }
            ParameterKind::Size | ParameterKind::Invalid => {}
        }
    }
    arguments.extend(kernel.returns.iter().map(|ty| tensor(ty, "write")));
    let (name, passed) = (&kernel.namespace, class::passed(&kernel.generics));
    let generics = class::declared(&kernel.generics, None);
    quote! {
        fn dynamic_reference #generics(
            #dims: &[i64],
            #scalars: &[::tilewright::__private::Constant],
            #buffers: &mut [::tilewright::__private::BufferArgument<'_>],
        ) -> ::tilewright::__private::Result<(), ::tilewright::__private::Error> {
            let definition = ::tilewright::__private::definition(#name::kernel #passed());
            let mut #buffers = ::tilewright::__private::Buffers::new(definition, #dims, #buffers)?;
            #name::__loops #passed(#dims, #(#arguments,)*)
        }
    }
}

/// The call's signature with a body that is never reached.
pub(super) fn without_body(kernel: &Kernel, name: &Ident, visibility: &syn::Visibility) -> TokenStream {
    let signature = signature(kernel, name, &Outputs::Returned);
    let lints = lints(kernel);
    quote! {
        #(#lints)*
        /// The definition has errors.
        #[allow(unused_variables, clippy::too_many_arguments)]
        #visibility #signature { ::tilewright::__private::definition_has_errors() }
    }
}

/// As [`without_body`], for `call_into`.
pub(super) fn into_without_body(kernel: &Kernel) -> Option<TokenStream> {
    if !has_outputs(kernel) {
        return None;
    }
    let signature = signature(kernel, &Ident::new("call_into", kernel.name.span()), &Outputs::Passed);
    Some(quote! {
        /// The definition has errors.
        #[allow(unused_variables, clippy::too_many_arguments)]
        pub #signature { ::tilewright::__private::definition_has_errors() }
    })
}

enum Outputs {
    Returned,
    Passed,
}

fn signature(kernel: &Kernel, name: &Ident, outputs: &Outputs) -> TokenStream {
    let arguments = kernel.parameters.iter().map(|parameter| {
        let name = &parameter.name;
        match &parameter.kind {
            ParameterKind::Tensor { ty, mutable } => {
                let view = view(ty, *mutable);
                quote!(#name: impl ::tilewright::__private::Into<#view>)
            }
            ParameterKind::Size => quote!(#name: usize),
            ParameterKind::Scalar(ty) => {
                let ty = rust_type(*ty, name.span());
                quote!(#name: #ty)
            }
            ParameterKind::Invalid => quote!(#name: impl ::tilewright::__private::Sized),
        }
    });
    let returned = kernel.returns.iter().map(tensor);
    let (passed, returned) = match outputs {
        Outputs::Returned if kernel.returns.len() == 1 => (Vec::new(), quote!(#(#returned)*)),
        Outputs::Returned => (Vec::new(), quote!((#(#returned),*))),
        Outputs::Passed => {
            let passed =
                kernel.results.iter().zip(&kernel.returns).enumerate().map(|(position, (name, ty))| {
                    let (name, view) = (output_name(kernel, position, &name.ident), view(ty, true));
                    quote!(#name: impl ::tilewright::__private::Into<#view>)
                });
            (passed.collect(), quote!(()))
        }
    };
    let lifetime = has_tensors(kernel, outputs).then(|| quote!('t));
    let generics = class::declared(&kernel.generics, lifetime);
    quote! {
        fn #name #generics(#(#arguments,)* #(#passed,)*)
            -> ::tilewright::__private::Result<#returned, ::tilewright::__private::Error>
    }
}

/// The result's own name as an argument, unless the definition has an argument of that name.
pub(super) fn output_name(kernel: &Kernel, position: usize, result: &Ident) -> Ident {
    let taken = kernel.parameters.iter().any(|parameter| parameter.name == *result)
        || kernel.results[..position].iter().any(|earlier| earlier.ident == *result);
    if taken { Ident::new(&format!("output_{position}"), result.span()) } else { result.clone() }
}

fn has_tensors(kernel: &Kernel, outputs: &Outputs) -> bool {
    let argument =
        kernel.parameters.iter().any(|parameter| matches!(parameter.kind, ParameterKind::Tensor { .. }));
    argument || (matches!(outputs, Outputs::Passed) && !kernel.returns.is_empty())
}

fn view(ty: &TensorType, mutable: bool) -> TokenStream {
    let (element, rank) = (rust_type(ty.element, ty.element_span), ty.dims.len());
    let view = Ident::new(if mutable { "TensorViewMut" } else { "TensorView" }, Span::call_site());
    quote!(::tilewright::__private::#view<'t, #element, #rank>)
}

/// The owned tensor, by the name that the user has for it: so that it is imported, and the import is used, as in any
/// Rust.
fn tensor(ty: &TensorType) -> TokenStream {
    let (path, element, rank) = (&ty.path, rust_type(ty.element, ty.element_span), ty.dims.len());
    quote!(#path<#element, #rank>)
}

/// Names the types of tensor arguments as the user does; see [`tensor`].
pub(super) fn argument_types(kernel: &Kernel) -> TokenStream {
    let types = kernel.parameters.iter().filter_map(|parameter| match &parameter.kind {
        ParameterKind::Tensor { ty, .. } => Some(tensor(ty)),
        _ => None,
    });
    quote! {
        #(let _: ::tilewright::__private::Option<#types> = ::tilewright::__private::None;)*
    }
}

/// Converts the arguments to views and infers the dimensions from their shapes.
fn prepare(kernel: &Kernel) -> TokenStream {
    let (dims, entry) = (local("dims"), local("kernel"));
    let (name, passed) = (&kernel.namespace, class::passed(&kernel.generics));
    let mut views = Vec::new();
    let mut shapes = Vec::new();
    let mut sizes = Vec::new();
    for parameter in &kernel.parameters {
        let name = &parameter.name;
        match &parameter.kind {
            ParameterKind::Tensor { ty, mutable } => {
                let view = view(ty, *mutable);
                let mutability = mutable.then(|| quote!(mut));
                views
                    .push(quote!(let #mutability #name: #view = ::tilewright::__private::Into::into(#name);));
                shapes.push(quote!(&#name.shape()));
            }
            ParameterKind::Size => sizes.push(name),
            _ => {}
        }
    }
    quote! {
        #(#views)*
        let #entry = #name::kernel #passed();
        let #dims = ::tilewright::__private::definition(#entry).infer(&[#(#shapes),*], &[#(#sizes),*])?;
        #name::__check_constants(&#dims)?;
    }
}

/// `fn __check_constants`: whether dimensions whose names are constants have their values.
pub(super) fn check_constants(kernel: &Kernel) -> TokenStream {
    let dims = local("dims");
    let sizes = reference::sizes(kernel, &dims);
    quote! {
        #[allow(non_snake_case, clippy::all, clippy::pedantic, clippy::nursery)]
        #[inline]
        fn __check_constants(
            #dims: &[i64],
        ) -> ::tilewright::__private::Result<(), ::tilewright::__private::Error> {
            #sizes
            ::tilewright::__private::Ok(())
        }
    }
}

/// Makes the result tensors `output_0`, …, and views `view_0`, … of them.
fn allocate(kernel: &Kernel) -> TokenStream {
    let (dims, entry) = (local("dims"), local("kernel"));
    let outputs = kernel.returns.iter().enumerate().map(|(position, ty)| {
        let (output, view, rank) = (numbered("output", position), numbered("view", position), ty.dims.len());
        let element = rust_type(ty.element, ty.element_span);
        quote! {
            let mut #output =
                ::tilewright::__private::allocate::<#element, #rank>(::tilewright::__private::definition(#entry), #position, &#dims)?;
            let mut #view = ::tilewright::__private::TensorViewMut::from(&mut #output);
        }
    });
    quote!(#(#outputs)*)
}

/// Converts the result tensors of the caller's to views `view_0`, … and checks their shapes.
fn check_outputs(kernel: &Kernel) -> TokenStream {
    let (dims, entry) = (local("dims"), local("kernel"));
    let outputs = kernel.results.iter().zip(&kernel.returns).enumerate().map(|(position, (name, ty))| {
        let (local, view) = (numbered("view", position), view(ty, true));
        let name = output_name(kernel, position, &name.ident);
        quote! {
            let mut #local: #view = ::tilewright::__private::Into::into(#name);
            ::tilewright::__private::definition(#entry).check_output(#position, &#local.shape(), &#dims)?;
        }
    });
    quote!(#(#outputs)*)
}

/// Runs the tuned kernel on the arguments and `view_0`, ….
fn run(kernel: &Kernel) -> TokenStream {
    let (dims, entry) = (local("dims"), local("kernel"));
    let mut scalars = Vec::new();
    let mut buffers = Vec::new();
    // The strides of each tensor.
    let mut strides = Vec::new();
    // Kept while the kernel runs: the bytes of `bool`s are copies, which are written back at the end.
    let mut guards = Vec::new();
    let mut write = |view: &Ident| {
        let (guard, own) = (numbered("bytes", guards.len()), numbered("places", guards.len()));
        guards.push(quote!(let (mut #guard, #own) = ::tilewright::__private::write_bytes(&mut #view);));
        (
            quote!(::tilewright::__private::BufferArgument::from(&mut #guard)),
            quote!(#own.as_ref().map(|strides| &strides[..])),
        )
    };
    let mut reads = Vec::new();
    for parameter in &kernel.parameters {
        let name = &parameter.name;
        match &parameter.kind {
            ParameterKind::Tensor { mutable: false, .. } => {
                let open = if parameter.is_constant { "constant_bytes" } else { "read_bytes" };
                let open = Ident::new(open, Span::call_site());
                let (bytes, own) = (numbered("read", reads.len()), numbered("strides", reads.len()));
                reads.push(quote!(let (#bytes, #own) = ::tilewright::__private::#open(&#name);));
                buffers.push(quote!(#bytes));
                strides.push(quote!(#own));
            }
            ParameterKind::Tensor { .. } => {
                let (bytes, own) = write(name);
                buffers.push(bytes);
                strides.push(own);
            }
            ParameterKind::Scalar(_) => {
                scalars.push(quote!(::tilewright::__private::scalar_constant(#name)));
            }
            ParameterKind::Size | ParameterKind::Invalid => {}
        }
    }
    for position in 0..kernel.results.len() {
        let (bytes, own) = write(&numbered("view", position));
        buffers.push(bytes);
        strides.push(own);
    }
    quote! {{
        #(#reads)*
        #(#guards)*
        #entry.run_strided(&#dims, &[#(#strides),*], &[#(#scalars),*], &mut [#(#buffers),*])?;
    }}
}

/// `output_0`, or a tuple.
fn result(kernel: &Kernel) -> TokenStream {
    let outputs: Vec<_> = (0..kernel.returns.len()).map(|position| numbered("output", position)).collect();
    match outputs.as_slice() {
        [output] => quote!(#output),
        outputs => quote!((#(#outputs),*)),
    }
}

fn errors_doc(kernel: &Kernel) -> String {
    let dims: Vec<_> = kernel.dims.iter().map(|dim| format!("`{}`", dim.name)).collect();
    let dims = if dims.is_empty() { "its signature".to_owned() } else { dims.join(", ") };
    format!(
        "\n# Errors\nWhen the tensors' shapes do not agree on {dims}, or an index that depends on data is out of \
         bounds."
    )
}

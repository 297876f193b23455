//! From a checked [`Kernel`] to the code that stands in its place.
//!
//! | item | for |
//! |---|---|
//! | `fn NAME` | the tuned call |
//! | `enum NAME` | a namespace in which `NAME::reference`, `NAME::call_into`, `NAME::on` and `NAME::kernel` live |
//! | `inventory::submit!` | finding the kernel by its name |
//!
//! A function and an enum of one name can stand wherever the definition stood: in a module, in a function, in
//! a doctest. Generated code names only `::tilewright::__private`, and its own locals are hygienic.

/// `quote!` whose own names no name of the user's can meet.
macro_rules! quote_hygienic {
    ($($tokens:tt)*) => { quote::quote_spanned!(proc_macro2::Span::mixed_site()=> $($tokens)*) };
}

mod build;
mod call;
mod data;
mod device;
mod function;
mod record;
mod reference;

pub(crate) use function::{function, function_skeleton};

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;

use super::ast::{Kernel, Name};
use super::class;
use tilewright_vocabulary::DType;

use super::types::ScalarType;

/// The code for a definition without errors.
pub(crate) fn kernel(kernel: &Kernel) -> TokenStream {
    let (call, items) = (call::tuned(kernel), items(kernel));
    quote! {
        #call
        #items
    }
}

/// The namespace of a kernel and its entry in the list of kernels.
fn items(kernel: &Kernel) -> TokenStream {
    let (namespace, name) = (namespace(kernel), &kernel.namespace);
    let (reference, call_into) = (call::reference(kernel), call::call_into(kernel));
    let (loops, on) = (reference::loops(kernel), device::calls(kernel));
    let (entry, check) = (entry(kernel), call::check_constants(kernel));
    let record = record::record(kernel);
    let submissions = submissions(kernel);
    let conditions = conditions(kernel);
    quote! {
        #namespace
        #(#conditions)*
        impl #name {
            #reference
            #call_into
            #on
            #entry
            #check
            #record
            #loops
        }
        #submissions
    }
}

/// The functions of a kernel that belongs to a type, for the `impl`, and the items that stand beside the `impl`.
pub(crate) fn method(kernel: &Kernel) -> (TokenStream, TokenStream) {
    let (call, forwards, record) = (call::tuned(kernel), call::forwards(kernel), record::forward(kernel));
    let on = device::forwards(kernel);
    (quote!(#call #forwards #on #record), items(kernel))
}

/// As [`method`], for a definition with errors; see [`skeleton`].
pub(crate) fn method_skeleton(kernel: &Kernel) -> (TokenStream, TokenStream) {
    let call = call::without_body(kernel, &kernel.name, &kernel.visibility);
    let (forwards, on) = (call::forwards(kernel), device::forwards(kernel));
    (quote!(#call #forwards #on), skeleton_items(kernel))
}

/// The expansion of a definition with errors: the same names and types without a body, so that
/// callers are not reported as well. It contains the body too, for the editor's completion.
pub(crate) fn skeleton(kernel: &Kernel) -> TokenStream {
    let call = call::without_body(kernel, &kernel.name, &kernel.visibility);
    let items = skeleton_items(kernel);
    quote! {
        #call
        #items
    }
}

fn skeleton_items(kernel: &Kernel) -> TokenStream {
    let name = &kernel.namespace;
    let public = syn::parse_quote!(pub);
    let reference = call::without_body(kernel, &Ident::new("reference", kernel.name.span()), &public);
    let call_into = call::into_without_body(kernel);
    let on = device::calls_without_body(kernel);
    let namespace = namespace(kernel);
    let loops = reference::loops(kernel);
    let types = call::argument_types(kernel);
    let generics = class::declared(&kernel.generics, None);
    quote! {
        #namespace
        impl #name {
            #reference
            #call_into
            #on
            /// The kernel, for tuning it.
            pub fn kernel #generics() -> &'static ::tilewright::__private::Kernel {
                #types
                ::tilewright::__private::definition_has_errors()
            }
        }
        #[allow(unexpected_cfgs)]
        const _: () = {
            #[cfg(rust_analyzer)]
            impl #name { #loops }
        };
    }
}

fn namespace(kernel: &Kernel) -> TokenStream {
    let (name, namespace, lints) = (&kernel.name, &kernel.namespace, lints(kernel));
    if name != namespace {
        return quote! {
            #(#lints)*
            #[allow(non_camel_case_types)]
            #[doc(hidden)]
            enum #namespace {}
        };
    }
    let visibility = &kernel.visibility;
    let doc = format!("What belongs to the kernel [`{name}`](fn@{name}) beside its call.");
    quote! {
        #(#lints)*
        #[allow(non_camel_case_types)]
        #[doc = #doc]
        #visibility enum #namespace {}
    }
}

/// `NAME::kernel`, with the definition as data.
fn entry(kernel: &Kernel) -> TokenStream {
    let definition = data::definition(kernel);
    let build = build::build(kernel);
    let dynamic = call::dynamic_reference(kernel);
    let types = call::argument_types(kernel);
    if !kernel.generics.is_empty() {
        let generics = class::declared(&kernel.generics, None);
        let dtypes = kernel.generics.iter().map(|generic| element_dtype(&generic.name));
        return quote! {
            /// The kernel for these element types, for tuning it and for looking at it.
            pub fn kernel #generics() -> &'static ::tilewright::__private::Kernel {
                #types
                #build
                #dynamic
                static __INSTANCES: ::tilewright::__private::Instances = ::tilewright::__private::Instances::new();
                __INSTANCES.get(&[#(#dtypes),*], || #definition)
            }
        };
    }
    quote! {
        /// The kernel, for tuning it and for looking at it.
        pub fn kernel() -> &'static ::tilewright::__private::Kernel {
            #types
            #build
            #dynamic
            static __DEFINITION: ::tilewright::__private::KernelDefinition = #definition;
            static __KERNEL: ::tilewright::__private::Kernel = ::tilewright::__private::Kernel::new(&__DEFINITION);
            &__KERNEL
        }
    }
}

/// The entries by which kernels are found by name. Of several type parameters the combinations are too many to list: they
/// are found once they are used.
fn submissions(kernel: &Kernel) -> TokenStream {
    let (name, conditions) = (&kernel.namespace, conditions(kernel));
    let kernels = match kernel.generics.as_slice() {
        [] => vec![quote!(#name::kernel)],
        [generic] => {
            let types = generic.types().map(|dtype| rust_type(ScalarType::Element(dtype), name.span()));
            types.map(|ty| quote!(#name::kernel::<#ty>)).collect()
        }
        _ => Vec::new(),
    };
    let submission = kernels.iter().map(|kernel| {
        quote! {
            #(#conditions)*
            ::tilewright::__private::inventory::submit! {
                ::tilewright::__private::KernelEntry { kernel: #kernel }
            }
        }
    });
    submission.collect()
}

/// The definition's lint levels, which hold for all that is generated.
fn lints(kernel: &Kernel) -> Vec<&syn::Attribute> {
    let levels = ["allow", "expect", "warn", "deny", "forbid", "cfg"];
    let holds = |attribute: &&syn::Attribute| levels.iter().any(|level| attribute.path().is_ident(level));
    kernel.attributes.iter().filter(holds).collect()
}

/// The conditions under which the definition exists: the attribute on an `impl` sees them unevaluated.
fn conditions(kernel: &Kernel) -> Vec<&syn::Attribute> {
    kernel.attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).collect()
}

/// A local of generated code, which no name of the user's can meet.
fn local(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

/// A numbered local.
fn numbered(name: &str, number: usize) -> Ident {
    local(&format!("{name}_{number}"))
}

/// The Rust type of a scalar; `f16` and `bf16` need not be imported.
fn rust_type(ty: ScalarType, span: Span) -> TokenStream {
    let name = Ident::new(ty.name(), span);
    match ty {
        ScalarType::Element(DType::F16 | DType::BF16) => {
            quote_spanned!(span=> ::tilewright::__private::#name)
        }
        _ => quote!(#name),
    }
}

/// The `DType` of a scalar.
fn dtype(ty: ScalarType) -> TokenStream {
    match ty.dtype() {
        Some(dtype) => {
            let variant = build::variant(dtype);
            quote!(::tilewright::__private::DType::#variant)
        }
        None => element_dtype(&Ident::new(ty.name(), Span::call_site())),
    }
}

/// The `DType` of a type parameter.
fn element_dtype(parameter: &Ident) -> TokenStream {
    quote!(<#parameter as ::tilewright::__private::Element>::DTYPE)
}

/// A whole literal in the type of a parameter, in code that knows the type.
fn integer_literal(ty: ScalarType, value: i64, span: Span) -> TokenStream {
    let (ty, value) = (rust_type(ty, span), proc_macro2::Literal::i64_suffixed(value));
    quote_spanned!(span=> ::tilewright::__private::integer_literal::<#ty>(#value))
}

/// A literal with a fraction in the type of a parameter: read as `f64`, then rounded.
fn float_literal(ty: ScalarType, literal: &syn::LitFloat, span: Span) -> TokenStream {
    let ty = rust_type(ty, span);
    let digits: TokenStream = literal.base10_digits().parse().unwrap_or_default();
    quote_spanned!(span=> ::tilewright::__private::float_literal::<#ty>(#digits as f64))
}

/// A path to a constant; `f16` and `bf16` need not be imported.
fn constant_path(path: &syn::Path) -> TokenStream {
    match path.segments.first().map(|segment| segment.ident.to_string()).as_deref() {
        Some("f16" | "bf16") if path.leading_colon.is_none() => quote!(::tilewright::__private::#path),
        _ => quote!(#path),
    }
}

/// The place of a span in the user's source.
fn location(span: Span) -> TokenStream {
    quote_spanned!(span=> ::tilewright::__private::location!())
}

/// A name for messages and for the program's text, without the `r#` of a word of Rust.
fn text(ident: &Ident) -> String {
    ident.unraw().to_string()
}

impl Name {
    fn text(&self) -> String {
        text(&self.ident)
    }
}

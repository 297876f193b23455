//! `#[tensor_kernel]` on an `impl`: kernels among the functions of a type.
//!
//! Neither an `enum` nor an `impl` can stand inside an `impl`, so that the items that belong to a kernel stand beside it, and the functions
//! that people call forward to them: `Layer::forward`, `Layer::forward_reference`, `Layer::forward_into`, `Layer::forward_kernel`.

use proc_macro2::{Group, Ident, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::ext::IdentExt;

use super::ast::Kernel;
use super::{check, emit, parse};
use crate::diagnostics::Diagnostics;

/// Expands the attribute on an `impl`: its functions with the attribute become kernels, the others stay.
pub(super) fn expand(
    attribute: &TokenStream,
    mut item: syn::ItemImpl,
    diagnostics: Diagnostics,
) -> TokenStream {
    let owner = owner(attribute, &item, &diagnostics);
    let mut kernels: Vec<Kernel> = Vec::new();
    let mut others = Vec::new();
    for member in std::mem::take(&mut item.items) {
        match member {
            syn::ImplItem::Fn(function) if has_attribute(&function, "tensor_kernel") => {
                kernels.push(kernel(function, &owner, &diagnostics));
            }
            mut other => {
                refuse_function_of_scalars(&mut other, &diagnostics);
                others.push(other);
            }
        }
    }
    if kernels.is_empty() {
        diagnostics.error(
            item.impl_token,
            "no function of this `impl` is a kernel",
            "mark each kernel with `#[tensor_kernel]`, or remove the attribute from the `impl`",
        );
    }
    item.items = others;
    let errors = diagnostics.finish();
    let has_errors = errors.is_some();
    let (mut members, mut beside) = (Vec::new(), Vec::new());
    for kernel in &kernels {
        let (member, items) = if has_errors { emit::method_skeleton(kernel) } else { emit::method(kernel) };
        members.push(member);
        beside.push(items);
    }
    let syn::ItemImpl { attrs, impl_token, generics, self_ty, items, .. } = &item;
    quote! {
        #errors
        #(#attrs)*
        #impl_token #generics #self_ty {
            #(#items)*
            #(#members)*
        }
        #(#beside)*
    }
}

/// The name of the type that the functions belong to; reports what kernels cannot belong to.
fn owner(attribute: &TokenStream, item: &syn::ItemImpl, diagnostics: &Diagnostics) -> Ident {
    if !attribute.is_empty() {
        diagnostics.error(attribute, "an `impl` has no options", "give them to each kernel inside it");
    }
    if let Some((_, path, _)) = &item.trait_ {
        diagnostics.error(
            path,
            "the kernels of a type stand in an `impl` of its own, not in that of a trait",
            "move the kernel there, and call it from the trait's function",
        );
    }
    if let Some(parameter) = item.generics.params.first() {
        diagnostics.error(
            parameter,
            "an `impl` with kernels has no parameters",
            "take element types as parameters of the kernel: `fn add<T: Element>(…)`",
        );
    }
    let name = match item.self_ty.as_ref() {
        syn::Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.clone()),
        _ => None,
    };
    name.unwrap_or_else(|| {
        diagnostics.error(&item.self_ty, "kernels belong to a type with a name", "write `impl Name { … }`");
        Ident::new("unnamed", proc_macro2::Span::call_site())
    })
}

/// A member as a kernel.
fn kernel(function: syn::ImplItemFn, owner: &Ident, diagnostics: &Diagnostics) -> Kernel {
    let syn::ImplItemFn { mut attrs, vis, defaultness, sig, block } = function;
    if let Some(token) = defaultness {
        diagnostics.error(token, "a kernel has no `default`", "remove it");
    }
    let position = attrs.iter().position(|attribute| is_named(attribute, "tensor_kernel"));
    let attribute = attrs.remove(position.expect("it was looked for"));
    let options = match &attribute.meta {
        syn::Meta::List(list) => list.tokens.clone(),
        _ => TokenStream::new(),
    };
    let function = syn::ItemFn { attrs, vis, sig, block: Box::new(block) };
    // `Self` means something else beside the `impl`.
    let named: syn::ItemFn = syn::parse2(without_self_type(function.to_token_stream(), owner))
        .expect("a name in the place of a name");
    let mut kernel = parse::kernel(&options, &named, diagnostics);
    kernel.title = format!("{}_{}", owner.unraw(), kernel.name.unraw());
    kernel.namespace = format_ident!("__kernel_{}", kernel.title, span = kernel.name.span());
    check::check(&mut kernel, diagnostics);
    kernel
}

/// The tokens with the type's name in the place of `Self`.
fn without_self_type(tokens: TokenStream, owner: &Ident) -> TokenStream {
    let rename = |tree| match tree {
        TokenTree::Ident(ident) if ident == "Self" => {
            let mut owner = owner.clone();
            owner.set_span(ident.span());
            TokenTree::Ident(owner)
        }
        TokenTree::Group(group) => {
            let mut renamed = Group::new(group.delimiter(), without_self_type(group.stream(), owner));
            renamed.set_span(group.span());
            TokenTree::Group(renamed)
        }
        other => other,
    };
    tokens.into_iter().map(rename).collect()
}

fn has_attribute(function: &syn::ImplItemFn, name: &str) -> bool {
    function.attrs.iter().any(|attribute| is_named(attribute, name))
}

/// Whether an attribute has this name, by whatever path.
fn is_named(attribute: &syn::Attribute, name: &str) -> bool {
    attribute.path().segments.last().is_some_and(|segment| segment.ident == name)
}

/// Reports a `#[tensor_fn]`, and takes the attribute away, whose expansion would be reported as well.
fn refuse_function_of_scalars(member: &mut syn::ImplItem, diagnostics: &Diagnostics) {
    let syn::ImplItem::Fn(function) = member else { return };
    function.attrs.retain(|attribute| {
        let is_refused = is_named(attribute, "tensor_fn");
        if is_refused {
            diagnostics.error(
                attribute,
                "a `#[tensor_fn]` is no function of a type",
                "move it out of the `impl`; kernels inside call it by its name",
            );
        }
        !is_refused
    });
}

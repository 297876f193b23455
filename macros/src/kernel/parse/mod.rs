//! From Rust's syntax to a [`Kernel`].
//!
//! Whatever is outside the kernel language is reported here, at the user's token, and becomes an
//! `Invalid` node, so that one run reports everything. Names, ranks and types are the checker's.

mod expression;
mod function;
mod generics;
mod options;
mod refused;
mod signature;
mod statement;

pub(crate) use function::function;

use proc_macro2::TokenStream;

use std::ops::Deref;

use syn::ext::IdentExt;

use super::ast::Kernel;
use super::class::Generic;
use super::types::{ScalarType, TypeParameter, Types};
use crate::diagnostics::Diagnostics;

/// What the parser knows of a definition beside its tokens: the type parameters. It reports errors as [`Diagnostics`] do.
struct Context<'a> {
    diagnostics: &'a Diagnostics,
    parameters: Vec<TypeParameter>,
}

impl<'a> Context<'a> {
    fn new(diagnostics: &'a Diagnostics, generics: &[Generic]) -> Self {
        let names = generics.iter().map(|generic| generic.name.to_string());
        let parameters = names.enumerate().map(|(position, name)| TypeParameter::new(name, position));
        Context { diagnostics, parameters: parameters.collect() }
    }

    /// The scalar type with this name: a type of Rust or a type parameter.
    fn scalar(&self, name: &str) -> Option<ScalarType> {
        let parameter = self.parameters.iter().find(|parameter| parameter.name == name);
        parameter.copied().map(ScalarType::Parameter).or_else(|| ScalarType::from_name(name))
    }
}

impl Deref for Context<'_> {
    type Target = Diagnostics;

    fn deref(&self) -> &Diagnostics {
        self.diagnostics
    }
}

/// Parses a definition.
pub(crate) fn kernel(attribute: &TokenStream, item: &syn::ItemFn, diagnostics: &Diagnostics) -> Kernel {
    let options::Options { accuracy, multiplies_padding } = options::options(attribute, diagnostics);
    let before = diagnostics.count();
    let generics = generics::generics(&item.sig.generics, "a kernel", diagnostics);
    let cx = &Context::new(diagnostics, &generics);
    let (parameters, returns) = signature::signature(&item.sig, cx);
    let incomplete = diagnostics.count() > before;
    let (body, results) = statement::body(&item.block, cx);
    Kernel {
        accuracy,
        multiplies_padding,
        attributes: item.attrs.clone(),
        visibility: item.vis.clone(),
        name: item.sig.ident.clone(),
        title: item.sig.ident.unraw().to_string(),
        namespace: item.sig.ident.clone(),
        generics,
        parameters,
        returns,
        incomplete,
        end: item.block.brace_token.span.close(),
        body,
        results,
        dims: Vec::new(),
        bindings: Vec::new(),
        types: Types::default(),
    }
}

//! Checks of a parsed definition beyond its form: names, ranks, roles.
//!
//! Resolves every name to a [`Binding`] and infers the types of values. Types are not judged here, and
//! neither is what depends on the whole program (races, reads before writes): rustc judges the first on the
//! reference's code, the builder the second.

mod expression;
mod function;
mod generics;
mod scope;
mod signature;
mod statement;
mod types;

pub(crate) use function::check_function;

use std::collections::BTreeMap;

use proc_macro2::Span;

use super::ast::{Binding, BindingId, BindingKind, Dimension, Kernel, Name, Role, Tensor, TensorType};
use super::types::Types;
use crate::diagnostics::Diagnostics;

/// Checks a definition and fills in what the names stand for.
pub(crate) fn check(kernel: &mut Kernel, diagnostics: &Diagnostics) {
    let mut checker = Checker {
        diagnostics,
        bindings: Vec::new(),
        dims: Vec::new(),
        types: Types::default(),
        scopes: vec![BTreeMap::new()],
        results: Vec::new(),
        result_names: kernel.results.iter().map(|name| name.ident.to_string()).collect(),
        callees: Vec::new(),
        uses: Vec::new(),
        incomplete: kernel.incomplete,
        incomplete_body: false,
        is_function: false,
    };
    checker.signature(kernel);
    checker.announce_results(kernel);
    checker.scopes.push(BTreeMap::new());
    checker.statements(&mut kernel.body);
    checker.results(&mut kernel.results, kernel.returns.len(), kernel.end);
    checker.usage();
    checker.narrow(&mut kernel.generics);
    kernel.bindings = checker.bindings;
    kernel.dims = checker.dims;
    kernel.types = checker.types;
}

struct Checker<'a> {
    diagnostics: &'a Diagnostics,
    bindings: Vec<Binding>,
    dims: Vec<Dimension>,
    types: Types,
    /// Innermost last; the arguments are in the first, the body's own names in the second.
    scopes: Vec<BTreeMap<String, BindingId>>,
    /// The tensors that the body returns, with the types that the signature gives them.
    results: Vec<(String, TensorType)>,
    /// The names in the final expression.
    result_names: Vec<String>,
    /// Every function that is called.
    callees: Vec<syn::Path>,
    /// The operations on values, with the class that the types of these must belong to.
    uses: Vec<generics::Use>,
    /// Whether part of the signature is missing: nothing is said of what may have been there.
    incomplete: bool,
    /// Whether part of the body is missing.
    incomplete_body: bool,
    /// Whether a `#[tensor_fn]` is checked, not a kernel.
    is_function: bool,
}

impl Checker<'_> {
    /// Pairs the names in the final expression with the types in the signature.
    fn announce_results(&mut self, kernel: &Kernel) {
        let names = kernel.results.iter().map(|name| name.ident.to_string());
        self.results = names.zip(kernel.returns.iter().cloned()).collect();
        let nothing = kernel.returns.is_empty() && kernel.results.is_empty() && !self.updates_in_place();
        if nothing && !self.incomplete {
            self.diagnostics.error(
                &kernel.name,
                format!("the kernel `{}` computes nothing", kernel.name),
                "return a tensor, as in `-> Tensor<f32, M, N>`, or update an argument `&mut Tensor<…>`",
            );
        }
    }

    fn updates_in_place(&self) -> bool {
        self.bindings
            .iter()
            .any(|binding| matches!(&binding.kind, BindingKind::Tensor(tensor) if tensor.role == Role::InOut))
    }

    /// Checks the final expression against the signature.
    fn results(&mut self, results: &mut [Name], returns: usize, end: Span) {
        match (results.last(), returns) {
            _ if self.incomplete => {}
            (Some(last), _) if results.len() != returns => self.diagnostics.error(
                &last.ident,
                format!(
                    "the body gives {}, and the signature returns {}",
                    count(results.len(), "tensor"),
                    if returns == 0 { "none".to_owned() } else { returns.to_string() }
                ),
                match returns {
                    0 => "add the result's type, as in `-> Tensor<f32, M, N>`",
                    _ => "end with one name for each returned tensor, in the same order",
                },
            ),
            (None, 1..) => self.diagnostics.error_at(
                end,
                "the body does not end with its result",
                "end it with the name of the tensor, without a semicolon, such as `c`",
            ),
            _ => {}
        }
        for (position, name) in results.iter_mut().enumerate() {
            self.result(name, position);
        }
    }

    fn result(&mut self, name: &mut Name, position: usize) {
        let ident = &name.ident;
        let Some(id) = self.find(ident) else {
            self.diagnostics.error(
                ident,
                format!("there is no tensor `{ident}` here"),
                format!("declare it at the top of the body: `let mut {ident} = Tensor::zeros();`"),
            );
            return;
        };
        name.binding = Some(id);
        let problem = match &mut self.bindings[id.0].kind {
            BindingKind::Tensor(Tensor { role: Role::Local, result, .. }) => {
                if result.is_none() {
                    *result = Some(position);
                    return;
                }
                (format!("`{ident}` is returned twice"), "return each tensor once".to_owned())
            }
            BindingKind::Tensor(Tensor { role: Role::Invalid, .. }) => return,
            BindingKind::Tensor(Tensor { role: Role::InOut, .. }) => (
                format!("`{ident}` is updated in place and need not be returned"),
                "remove it from the results".to_owned(),
            ),
            BindingKind::Tensor(_) => (
                format!("the argument `{ident}` is no result"),
                "return a tensor of the kernel's own: `let mut c = Tensor::zeros();`".to_owned(),
            ),
            _ => (
                format!("`{ident}` is no tensor"),
                "store the value, as in `c[[0]] = …;`, and return that tensor".to_owned(),
            ),
        };
        self.diagnostics.error(ident, problem.0, problem.1);
    }

    /// Reports tensors that are declared in vain.
    fn usage(&mut self) {
        if self.incomplete_body {
            return;
        }
        for Binding { name, kind } in &self.bindings {
            let BindingKind::Tensor(tensor) = kind else { continue };
            match (tensor.role, tensor.written) {
                (Role::InOut, false) => self.diagnostics.error(
                    name,
                    format!("`{name}` is taken as `&mut` and never written"),
                    "take `&Tensor<…>`, or store to it",
                ),
                (Role::Local, false) if tensor.result.is_some() => self.diagnostics.error(
                    name,
                    format!("the result `{name}` is never written"),
                    format!("store its elements, as in `{name}[[{}]] = …;`", tensor.example_indices()),
                ),
                (Role::Local, true) if tensor.result.is_none() && !tensor.read => self.diagnostics.error(
                    name,
                    format!("`{name}` is written, but neither read nor returned"),
                    "return it, read it, or remove it",
                ),
                (Role::Local, false) if tensor.result.is_none() && !tensor.read => {
                    self.diagnostics.error(name, format!("`{name}` is never used"), "remove it")
                }
                _ => {}
            }
        }
    }
}

/// `1 tensor`, `2 tensors`
fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

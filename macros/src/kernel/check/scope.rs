//! Names and what they stand for.

use std::collections::BTreeMap;

use proc_macro2::Ident;

use super::Checker;
use crate::kernel::ast::{Binding, BindingId, BindingKind, Tensor};

impl Checker<'_> {
    /// The binding of a name, innermost first.
    pub(super) fn find(&self, ident: &Ident) -> Option<BindingId> {
        let name = ident.to_string();
        self.scopes.iter().rev().find_map(|scope| scope.get(&name).copied())
    }

    /// A visible name that differs only in upper and lower case.
    pub(super) fn in_other_case(&self, ident: &Ident) -> Option<&str> {
        let name = ident.to_string();
        let mut names = self.scopes.iter().rev().flat_map(|scope| scope.keys());
        names.find(|other| other.eq_ignore_ascii_case(&name)).map(String::as_str)
    }

    /// Introduces a name in the innermost scope.
    pub(super) fn declare(&mut self, name: &Ident, kind: BindingKind) -> BindingId {
        if let Some(earlier) = self.find(name)
            && !may_shadow(&kind, &self.bindings[earlier.0].kind)
        {
            let what = self.bindings[earlier.0].kind.describe();
            self.diagnostics.error(
                name,
                format!("`{name}` is already the name of {what}"),
                "choose another name",
            );
            // The first meaning stays, so that its uses are not reported as well.
            return earlier;
        }
        let id = BindingId(self.bindings.len());
        self.bindings.push(Binding { name: name.clone(), kind });
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_string(), id);
        }
        id
    }

    /// Runs `body` in a scope of its own.
    pub(super) fn scoped<R>(&mut self, body: impl FnOnce(&mut Self) -> R) -> R {
        self.scopes.push(BTreeMap::new());
        let result = body(self);
        self.scopes.pop();
        result
    }

    /// Whether the innermost scope is the body's own.
    pub(super) fn at_top(&self) -> bool {
        self.scopes.len() == 2
    }

    /// The dimensions and `usize` arguments, for messages.
    pub(super) fn dim_names(&self) -> String {
        let names: Vec<_> = self.dims.iter().map(|dim| format!("`{}`", dim.name)).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    }
}

/// Scalars may be renamed as in Rust. A name of anything else keeps one meaning, so that the kernel's text
/// form, its errors and its loops can be read with the definition beside them.
fn may_shadow(new: &BindingKind, earlier: &BindingKind) -> bool {
    matches!(new, BindingKind::Let { .. } | BindingKind::Accumulator { .. })
        && matches!(earlier, BindingKind::Let { .. } | BindingKind::Loop)
}

impl BindingKind {
    /// The kind of the name, for messages.
    pub(super) fn describe(&self) -> &'static str {
        match self {
            BindingKind::Dim(_) => "a dimension",
            BindingKind::Scalar(_) => "a scalar argument",
            BindingKind::Tensor(_) => "a tensor",
            BindingKind::Loop => "a loop variable",
            BindingKind::Let { .. } => "a value",
            BindingKind::Accumulator { .. } => "a `let mut` scalar",
        }
    }
}

impl Tensor {
    /// Placeholders for its indices, for messages.
    pub(super) fn example_indices(&self) -> String {
        let rank = self.ty.as_ref().map_or(1, |ty| ty.dims.len());
        let names = ["i", "j", "k", "l", "m", "n"];
        (0..rank).map(|axis| names.get(axis).copied().unwrap_or("…")).collect::<Vec<_>>().join(", ")
    }
}

//! A `#[tensor_fn]`: the names, types and calls of its body.

use std::collections::BTreeMap;

use super::Checker;
use crate::diagnostics::Diagnostics;
use crate::kernel::ast::{BindingKind, Function};
use crate::kernel::types::Types;

/// Checks a function and fills in what the names stand for.
pub(crate) fn check_function(function: &mut Function, diagnostics: &Diagnostics) {
    let mut checker = Checker {
        diagnostics,
        bindings: Vec::new(),
        dims: Vec::new(),
        types: Types::default(),
        scopes: vec![BTreeMap::new()],
        results: Vec::new(),
        result_names: Vec::new(),
        callees: Vec::new(),
        uses: Vec::new(),
        incomplete: false,
        incomplete_body: false,
        is_function: true,
    };
    for argument in &function.arguments {
        let ty = checker.types.known(argument.ty);
        checker.declare(&argument.name, BindingKind::Let { ty, data: true });
    }
    checker.block(&mut function.body);
    checker.expect_known(&function.body.value, function.result);
    checker.narrow(&mut function.generics);
    for path in &checker.callees {
        if path.is_ident(&function.name) {
            diagnostics.error(
                path,
                format!("the function `{}` calls itself", function.name),
                "write the computation out: a program holds no recursion",
            );
        }
    }
    function.bindings = checker.bindings;
    function.types = checker.types;
    function.callees = checker.callees;
}

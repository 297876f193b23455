//! Intrinsics become the statements that describe them.

use crate::lower::{LowerError, LowerOptions};
use crate::program::Program;
use crate::stmt::Stmt;

/// Replaces every intrinsic by its body.
pub(super) fn expand_intrinsics(program: &mut Program, _: &LowerOptions) -> Result<(), LowerError> {
    if holds_intrinsic(&program.body) {
        expand(&mut program.body);
    }
    Ok(())
}

fn holds_intrinsic(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Intrinsic(_)) || stmt.children().into_iter().any(holds_intrinsic)
}

fn expand(stmt: &mut Stmt) {
    while let Stmt::Intrinsic(node) = stmt {
        *stmt = node.body.clone();
    }
    stmt.children_mut().into_iter().for_each(expand);
}

//! Intrinsics that the backend does not emit become the statements that describe them.
//!
//! A marked statement goes through lowering as one statement, so that it still matches its description in the
//! flat program, where the backend takes the operands from it.

use std::sync::Arc;

use crate::lower::{LowerError, LowerOptions};
use crate::program::Program;
use crate::stmt::{LoopKind, Stmt, Symbol};

/// Replaces every intrinsic that is not wanted by its body.
pub(in crate::lower) fn expand_intrinsics(
    program: &mut Program,
    options: &LowerOptions,
) -> Result<(), LowerError> {
    if holds_intrinsic(&program.body) {
        expand(&mut program.body, &options.intrinsics);
    }
    Ok(())
}

/// Whether a marked statement stands in a statement.
pub(in crate::lower) fn holds_intrinsic(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Intrinsic(_)) || stmt.children().into_iter().any(holds_intrinsic)
}

fn expand(stmt: &mut Stmt, wanted: &[Symbol]) {
    while let Stmt::Intrinsic(node) = stmt {
        if wanted.contains(&node.name) {
            return make_plain(&mut Arc::make_mut(node).body);
        }
        *stmt = node.body.clone();
    }
    stmt.children_mut().into_iter().for_each(|child| expand(child, wanted));
}

/// Makes the loops of a marked statement serial: they belong to the instruction, and no pass may rewrite them.
pub(in crate::lower) fn make_plain(stmt: &mut Stmt) {
    if let Stmt::For(node) = stmt {
        let node = Arc::make_mut(node);
        node.kind = LoopKind::Serial;
        node.annotations.clear();
    }
    stmt.children_mut().into_iter().for_each(make_plain);
}

//! Parallel loops inside a parallel loop become serial: the outermost one has all the threads.

use std::sync::Arc;

use crate::lower::{LowerError, LowerOptions};
use crate::program::Program;
use crate::stmt::{LoopKind, Stmt};

/// Makes parallel loops inside parallel loops serial.
pub(in crate::lower) fn keep_outermost_parallel(
    program: &mut Program,
    _: &LowerOptions,
) -> Result<(), LowerError> {
    keep_outermost(&mut program.body, false);
    Ok(())
}

fn keep_outermost(stmt: &mut Stmt, mut is_inside: bool) {
    if let Stmt::For(node) = stmt
        && node.kind == LoopKind::Parallel
    {
        if is_inside {
            Arc::make_mut(node).kind = LoopKind::Serial;
        }
        is_inside = true;
    }
    for child in stmt.children_mut() {
        keep_outermost(child, is_inside);
    }
}

//! Whether statements, expressions and indices access buffers, wherever the accesses stand: in values, in conditions and
//! inside indices.

use crate::analysis::block::loads_in;
use crate::expr::Expr;
use crate::ids::BufferId;
use crate::index::{Base, Index};
use crate::stmt::{LoopKind, Stmt};

/// Whether a load occurs inside an index.
pub(crate) fn reads_memory(index: &Index) -> bool {
    index.terms().iter().any(|term| match &term.digit.base {
        Base::Var(_) | Base::Lane(_) => false,
        Base::Sum(sum) => reads_memory(sum),
        Base::Value(value) => loads_anything(value),
    })
}

/// Whether a load occurs in an expression, also inside indices.
pub(crate) fn loads_anything(expr: &Expr) -> bool {
    let mut found = Vec::new();
    loads_in(expr, &mut found);
    !found.is_empty()
}

/// Whether an expression loads from a buffer, also inside indices.
pub(crate) fn loads_from(expr: &Expr, buffer: BufferId) -> bool {
    let mut found = Vec::new();
    loads_in(expr, &mut found);
    found.iter().any(|access| access.buffer == buffer)
}

/// Whether a statement itself, without the statements inside it, accesses a buffer.
pub(crate) fn accesses_directly(stmt: &Stmt, buffer: BufferId) -> bool {
    match stmt {
        Stmt::Store(node) => {
            node.buffer == buffer
                || loads_from(&node.value, buffer)
                || node.indices.iter().any(|index| loads_from(&Expr::index(index.clone()), buffer))
        }
        Stmt::If(node) => loads_from(&node.condition, buffer),
        Stmt::For(_)
        | Stmt::Seq(_)
        | Stmt::Block(_)
        | Stmt::Alloc(_)
        | Stmt::Intrinsic(_)
        | Stmt::Barrier
        | Stmt::Copies(_)
        | Stmt::Shuffle(_) => false,
    }
}

/// Whether a buffer is accessed anywhere in a statement.
pub(crate) fn accesses(stmt: &Stmt, buffer: BufferId) -> bool {
    accesses_directly(stmt, buffer) || stmt.children().into_iter().any(|child| accesses(child, buffer))
}

/// Whether threads wait anywhere in a statement: for each other, or for their copies.
pub(crate) fn holds_barrier(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Barrier | Stmt::Copies(_) | Stmt::Shuffle(_)) || stmt.each_child().any(holds_barrier)
}

/// Whether a statement holds threads or makes them wait for each other: another one must neither stand around a copy of it nor decide
/// between copies of it, because a nest is one grid, and all threads of a block arrive at a barrier.
pub(crate) fn is_indivisible(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Barrier | Stmt::Copies(_) | Stmt::Shuffle(_))
        || matches!(stmt, Stmt::For(node) if matches!(node.kind, LoopKind::Bound(_)))
        || stmt.each_child().any(is_indivisible)
}

//! Loads and stores in all positions: in values, in conditions and inside indices.

use std::sync::Arc;

use crate::analysis::access::reads_memory;
use crate::expr::{Expr, ExprKind, Indices};
use crate::ids::BufferId;
use crate::index::{Base, Index};
use crate::stmt::Stmt;
use crate::visit::rewrite_expr;

/// Gives the new form of an access; `None` when it stays.
pub(crate) type Rewrite<'a> = &'a dyn Fn(BufferId, &Indices) -> Option<(BufferId, Indices)>;

/// Rewrites, in place, the buffer and the indices of every access in a statement. Accesses inside the
/// indices of another are rewritten first.
pub(crate) fn rewrite_accesses(stmt: &mut Stmt, rewrite: Rewrite<'_>) {
    match stmt {
        Stmt::Store(node) => {
            let store = Arc::make_mut(node);
            for index in &mut store.indices {
                if let Some(new) = rewrite_in_index(index, rewrite) {
                    *index = new;
                }
            }
            if let Some((buffer, indices)) = rewrite(store.buffer, &store.indices) {
                (store.buffer, store.indices) = (buffer, indices);
            }
            if let Some(new) = rewrite_in_expr(&store.value, rewrite) {
                store.value = new;
            }
        }
        Stmt::If(node) => {
            if let Some(new) = rewrite_in_expr(&node.condition, rewrite) {
                Arc::make_mut(node).condition = new;
            }
        }
        Stmt::For(_)
        | Stmt::Seq(_)
        | Stmt::Block(_)
        | Stmt::Alloc(_)
        | Stmt::Intrinsic(_)
        | Stmt::Barrier
        | Stmt::Copies(_)
        | Stmt::Shuffle(_) => {}
    }
    for child in stmt.children_mut() {
        rewrite_accesses(child, rewrite);
    }
}

/// Rewrites every access in an expression; `None` when there is nothing to rewrite.
pub(crate) fn rewrite_in_expr(expr: &Expr, rewrite: Rewrite<'_>) -> Option<Expr> {
    rewrite_expr(expr, &mut |node| match node.kind() {
        ExprKind::Load(buffer, indices) => {
            let inside = rewrite_in_indices(indices, rewrite);
            let (buffer, indices) = match rewrite(*buffer, inside.as_ref().unwrap_or(indices)) {
                Some(rewritten) => rewritten,
                None => (*buffer, inside?),
            };
            Some(Expr::new(node.dtype(), ExprKind::Load(buffer, indices)))
        }
        ExprKind::Index(index) => Some(Expr::index(rewrite_in_index(index, rewrite)?)),
        _ => None,
    })
}

fn rewrite_in_indices(indices: &Indices, rewrite: Rewrite<'_>) -> Option<Indices> {
    crate::visit::rewrite_all(indices, &|index| rewrite_in_index(index, rewrite))
}

/// Rewrites the accesses inside an index, which are rare: only data makes them.
fn rewrite_in_index(index: &Index, rewrite: Rewrite<'_>) -> Option<Index> {
    if !reads_memory(index) {
        return None;
    }
    Some(index.map_bases(&|base| match base {
        Base::Value(value) => rewrite_in_expr(value, rewrite).map(Index::value),
        Base::Sum(sum) => rewrite_in_index(sum, rewrite),
        Base::Var(_) | Base::Lane(_) => None,
    }))
}

/// Whether a statement holds the allocation of a buffer.
pub(crate) fn is_allocated(stmt: &Stmt, buffer: BufferId) -> bool {
    matches!(stmt, Stmt::Alloc(node) if node.buffer == buffer)
        || stmt.each_child().any(|child| is_allocated(child, buffer))
}

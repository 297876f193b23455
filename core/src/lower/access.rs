//! Loads and stores, wherever they stand: in values, in conditions and inside indices.

use std::sync::Arc;

use crate::analysis::block::loads_in;
use crate::expr::{Expr, ExprKind, Indices};
use crate::ids::BufferId;
use crate::index::{Base, Index};
use crate::stmt::Stmt;
use crate::visit::rewrite_expr;

/// What an access becomes; `None` when it stays.
pub(super) type Rewrite<'a> = &'a dyn Fn(BufferId, &Indices) -> Option<(BufferId, Indices)>;

/// Rewrites, in place, the buffer and the indices of every access in a statement. Accesses inside the
/// indices of another are rewritten first.
pub(super) fn rewrite_accesses(stmt: &mut Stmt, rewrite: Rewrite<'_>) {
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
        Stmt::For(_) | Stmt::Seq(_) | Stmt::Block(_) | Stmt::Alloc(_) | Stmt::Intrinsic(_) => {}
    }
    for child in stmt.children_mut() {
        rewrite_accesses(child, rewrite);
    }
}

/// Rewrites every access in an expression; `None` when there is nothing to rewrite.
pub(super) fn rewrite_in_expr(expr: &Expr, rewrite: Rewrite<'_>) -> Option<Expr> {
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

/// Whether a load occurs inside an index.
pub(super) fn reads_memory(index: &Index) -> bool {
    index.terms().iter().any(|term| match &term.digit.base {
        Base::Var(_) | Base::Lane(_) => false,
        Base::Sum(sum) => reads_memory(sum),
        Base::Value(value) => {
            let mut found = Vec::new();
            loads_in(value, &mut found);
            !found.is_empty()
        }
    })
}

/// Whether a load occurs in an expression, also inside indices.
pub(super) fn loads_anything(expr: &Expr) -> bool {
    let mut found = Vec::new();
    loads_in(expr, &mut found);
    !found.is_empty()
}

/// Whether an expression loads from a buffer, also inside indices.
pub(super) fn loads_from(expr: &Expr, buffer: BufferId) -> bool {
    let mut found = Vec::new();
    loads_in(expr, &mut found);
    found.iter().any(|access| access.buffer == buffer)
}

/// Whether a statement itself, without the statements inside it, accesses a buffer.
pub(super) fn accesses_directly(stmt: &Stmt, buffer: BufferId) -> bool {
    match stmt {
        Stmt::Store(node) => {
            node.buffer == buffer
                || loads_from(&node.value, buffer)
                || node.indices.iter().any(|index| loads_from(&Expr::index(index.clone()), buffer))
        }
        Stmt::If(node) => loads_from(&node.condition, buffer),
        Stmt::For(_) | Stmt::Seq(_) | Stmt::Block(_) | Stmt::Alloc(_) | Stmt::Intrinsic(_) => false,
    }
}

/// Whether a buffer is accessed anywhere in a statement.
pub(super) fn accesses(stmt: &Stmt, buffer: BufferId) -> bool {
    accesses_directly(stmt, buffer) || stmt.children().into_iter().any(|child| accesses(child, buffer))
}

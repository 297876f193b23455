//! Accesses of blocks, moved to other buffers and elements.

use std::sync::Arc;

use crate::analysis::block::loads_in;
use crate::dtype::DType;
use crate::expr::{Expr, ExprKind, Indices};
use crate::ids::BufferId;
use crate::index::{Base, Index};
use crate::stmt::{Block, Stmt};
use crate::visit::{rewrite_expr, rewrite_indices, rewrite_stmt};

/// Replaces every load of a buffer inside a statement, also those inside indices. `replace` gets the
/// load's indices.
pub(in crate::schedule) fn replace_loads(
    stmt: &mut Stmt,
    buffer: BufferId,
    replace: &dyn Fn(&Indices) -> Expr,
) {
    rewrite_stmt(stmt, &|index| replace_loads_in_index(index, buffer, replace), &|expr| {
        replace_loads_in(expr, buffer, replace)
    });
}

/// Lets a block access, instead of the elements of a buffer, those that `moved` gives for their indices.
pub(in crate::schedule) fn redirect_accesses(
    block: &mut Block,
    buffer: BufferId,
    dtype: DType,
    moved: &dyn Fn(&Indices) -> (BufferId, Indices),
) {
    let load = |indices: &Indices| {
        let (target, indices) = moved(indices);
        Expr::load(dtype, target, indices)
    };
    for part in block.init.iter_mut().chain([&mut block.body]) {
        replace_loads(part, buffer, &load);
        redirect_stores(part, buffer, moved);
    }
}

fn redirect_stores(stmt: &mut Stmt, buffer: BufferId, moved: &dyn Fn(&Indices) -> (BufferId, Indices)) {
    if let Stmt::Store(node) = stmt {
        if node.buffer == buffer {
            let node = Arc::make_mut(node);
            (node.buffer, node.indices) = moved(&node.indices);
        }
        return;
    }
    stmt.children_mut().into_iter().for_each(|child| redirect_stores(child, buffer, moved));
}

/// Lets stores to a buffer go to another one.
pub(in crate::schedule) fn redirect_stores_to(stmt: &mut Stmt, from: BufferId, to: BufferId) {
    redirect_stores(stmt, from, &|indices| (to, indices.clone()));
}

/// Replaces every load of a buffer in an expression; `None` when there is none.
pub(in crate::schedule) fn replace_loads_in(
    expr: &Expr,
    buffer: BufferId,
    replace: &dyn Fn(&Indices) -> Expr,
) -> Option<Expr> {
    let inside = rewrite_indices(expr, &|index| replace_loads_in_index(index, buffer, replace));
    let outer = rewrite_expr(inside.as_ref().unwrap_or(expr), &mut |node| match node.kind() {
        ExprKind::Load(loaded, indices) if *loaded == buffer => Some(replace(indices)),
        _ => None,
    });
    outer.or(inside)
}

fn replace_loads_in_index(
    index: &Index,
    buffer: BufferId,
    replace: &dyn Fn(&Indices) -> Expr,
) -> Option<Index> {
    // Most indices are sums of variables.
    if index.terms().iter().all(|term| matches!(term.digit.base, Base::Var(_) | Base::Lane(_))) {
        return None;
    }
    let mut found = Vec::new();
    let probe = Expr::index(index.clone());
    loads_in(&probe, &mut found);
    if !found.iter().any(|access| access.buffer == buffer) {
        return None;
    }
    Some(index.map_bases(&|base| match base {
        Base::Value(value) => replace_loads_in(value, buffer, replace).map(Index::value),
        Base::Sum(sum) => replace_loads_in_index(sum, buffer, replace),
        Base::Var(_) | Base::Lane(_) => None,
    }))
}

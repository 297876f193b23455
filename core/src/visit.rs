//! Walking and rebuilding expressions and statements.
//!
//! Rebuilding keeps what does not change: a rewriter answers `None` for "as it was", and the shared
//! nodes around it stay shared.

use std::sync::Arc;

use crate::expr::{Expr, ExprKind, Indices};
use crate::ids::{BlockId, BufferId, LoopId, VarId};
use crate::index::{Base, Index};
use crate::stmt::{Block, For, Stmt};

/// Calls `visit` with every variable that an expression mentions, also inside indices.
pub fn for_each_var(expr: &Expr, visit: &mut dyn FnMut(VarId)) {
    for_each_expr(expr, &mut |node| match node.kind() {
        ExprKind::Scalar(var) => visit(*var),
        ExprKind::Index(index) | ExprKind::Bounded(_, index) => index.for_each_var(&mut |var| visit(var)),
        ExprKind::Load(_, indices) => {
            indices.iter().for_each(|index| index.for_each_var(&mut |var| visit(var)))
        }
        _ => {}
    });
}

/// Calls `visit` with an expression and every operand inside it, outer first. Values inside indices
/// are not visited.
pub fn for_each_expr<'a, F: FnMut(&'a Expr) + ?Sized>(expr: &'a Expr, visit: &mut F) {
    visit(expr);
    for operand in expr.operands() {
        for_each_expr(operand, visit);
    }
}

/// Calls `visit` with the buffer and the indices of every load in an expression, in order of appearance, also of those
/// inside indices: they come before the load that they are of.
pub fn for_each_load<'a, F>(expr: &'a Expr, visit: &mut F)
where
    F: FnMut(BufferId, &'a Indices) + ?Sized,
{
    for_each_expr(expr, &mut |node| match node.kind() {
        ExprKind::Load(buffer, indices) => {
            indices.iter().for_each(|index| for_each_load_in_index(index, visit));
            visit(*buffer, indices);
        }
        ExprKind::Index(index) | ExprKind::Bounded(_, index) => for_each_load_in_index(index, visit),
        _ => {}
    });
}

/// As [`for_each_load`], inside an index.
pub fn for_each_load_in_index<'a, F>(index: &'a Index, visit: &mut F)
where
    F: FnMut(BufferId, &'a Indices) + ?Sized,
{
    for term in index.terms() {
        match &term.digit.base {
            Base::Var(_) | Base::Lane(_) => {}
            Base::Sum(sum) => for_each_load_in_index(sum, visit),
            Base::Value(value) => for_each_load(value, visit),
        }
    }
}

/// The number of lanes of a value: 1 unless an index inside mentions a lane.
pub fn lanes(expr: &Expr) -> u32 {
    let own = match expr.kind() {
        ExprKind::Index(index) => index.lanes(),
        ExprKind::Load(_, indices) => indices.iter().map(Index::lanes).max().unwrap_or(1),
        _ => 1,
    };
    expr.operands().into_iter().map(lanes).fold(own, u32::max)
}

/// Replaces variables in every index of an expression; `replace` gives `None` for those that stay.
pub fn substitute_expr(expr: &Expr, replace: &dyn Fn(VarId) -> Option<Index>) -> Expr {
    rewrite_indices(expr, &|index| {
        let mut touched = false;
        index.for_each_var(&mut |var| touched |= replace(var).is_some());
        touched.then(|| index.substitute(replace))
    })
    .unwrap_or_else(|| expr.clone())
}

/// Puts in for a variable what stands beside it in a list; variables that are not in it stay.
pub fn listed(values: &[(VarId, Index)]) -> impl Fn(VarId) -> Option<Index> {
    |var| values.iter().find(|(old, _)| *old == var).map(|(_, value)| value.clone())
}

/// Rebuilds an expression with its indices rewritten; `None` when nothing changes. `rewrite` sees
/// whole indices only, and is itself responsible for values inside them.
pub fn rewrite_indices(expr: &Expr, rewrite: &dyn Fn(&Index) -> Option<Index>) -> Option<Expr> {
    rewrite_expr(expr, &mut |node| {
        let kind = match node.kind() {
            ExprKind::Index(index) => ExprKind::Index(rewrite(index)?),
            ExprKind::Bounded(value, extent) => ExprKind::Bounded(value.clone(), rewrite(extent)?),
            ExprKind::Load(buffer, indices) => ExprKind::Load(*buffer, rewrite_all(indices, rewrite)?),
            _ => return None,
        };
        Some(Expr::new(node.dtype(), kind))
    })
}

/// Rebuilds a list of indices; `None` when nothing changes.
pub fn rewrite_all(indices: &Indices, rewrite: &dyn Fn(&Index) -> Option<Index>) -> Option<Indices> {
    let changed: Vec<Option<Index>> = indices.iter().map(rewrite).collect();
    if changed.iter().all(Option::is_none) {
        return None;
    }
    Some(indices.iter().zip(changed).map(|(old, new)| new.unwrap_or_else(|| old.clone())).collect())
}

/// Rebuilds an expression bottom-up; `None` when nothing changes. `rewrite` sees each node after its
/// operands were rebuilt. Values inside indices are not visited.
pub fn rewrite_expr(expr: &Expr, rewrite: &mut dyn FnMut(&Expr) -> Option<Expr>) -> Option<Expr> {
    let rebuilt = rewrite_operands(expr, rewrite);
    let node = rebuilt.as_ref().unwrap_or(expr);
    rewrite(node).or(rebuilt)
}

fn rewrite_operands(expr: &Expr, rewrite: &mut dyn FnMut(&Expr) -> Option<Expr>) -> Option<Expr> {
    let mut changed = false;
    let mut rebuild = |operand: &Expr| match rewrite_expr(operand, rewrite) {
        Some(new) => {
            changed = true;
            new
        }
        None => operand.clone(),
    };
    let kind = match expr.kind() {
        ExprKind::Constant(_) | ExprKind::Scalar(_) | ExprKind::Index(_) | ExprKind::Load(..) => return None,
        ExprKind::Unary(op, a) => ExprKind::Unary(*op, rebuild(a)),
        ExprKind::Binary(op, a, b) => ExprKind::Binary(*op, rebuild(a), rebuild(b)),
        ExprKind::MulAdd(a, b, c) => ExprKind::MulAdd(rebuild(a), rebuild(b), rebuild(c)),
        ExprKind::Select(a, b, c) => ExprKind::Select(rebuild(a), rebuild(b), rebuild(c)),
        ExprKind::Cast(a) => ExprKind::Cast(rebuild(a)),
        ExprKind::Bitcast(a) => ExprKind::Bitcast(rebuild(a)),
        ExprKind::Bounded(a, extent) => ExprKind::Bounded(rebuild(a), extent.clone()),
    };
    changed.then(|| Expr::new(expr.dtype(), kind))
}

/// Calls `visit` with a statement and every statement inside it, outer first.
pub fn for_each_stmt<'a, F: FnMut(&'a Stmt) + ?Sized>(stmt: &'a Stmt, visit: &mut F) {
    visit(stmt);
    match stmt {
        Stmt::Seq(stmts) => stmts.iter().for_each(|child| for_each_stmt(child, visit)),
        Stmt::For(node) => for_each_stmt(&node.body, visit),
        Stmt::Block(node) => {
            node.init.iter().for_each(|init| for_each_stmt(init, visit));
            for_each_stmt(&node.body, visit);
        }
        Stmt::Store(_) | Stmt::Barrier | Stmt::Copies(_) => {}
        Stmt::If(node) => {
            for_each_stmt(&node.then, visit);
            node.otherwise.iter().for_each(|otherwise| for_each_stmt(otherwise, visit));
        }
        Stmt::Alloc(node) => for_each_stmt(&node.body, visit),
        Stmt::Intrinsic(node) => for_each_stmt(&node.body, visit),
        Stmt::Shuffle(node) => for_each_stmt(&node.body, visit),
    }
}

/// Calls `visit` with every expression that stands directly in a statement (a store's value, an
/// `if`'s condition) anywhere inside `stmt`.
pub fn for_each_root_expr<'a>(stmt: &'a Stmt, visit: &mut dyn FnMut(&'a Expr)) {
    for_each_stmt(stmt, &mut |node| match node {
        Stmt::Store(store) => visit(&store.value),
        Stmt::If(node) => visit(&node.condition),
        _ => {}
    });
}

/// Rewrites, in place, every index and every expression root of a statement: extents, bindings,
/// guards, store indices, values and conditions.
pub fn rewrite_stmt(
    stmt: &mut Stmt,
    index: &dyn Fn(&Index) -> Option<Index>,
    expr: &dyn Fn(&Expr) -> Option<Expr>,
) {
    let set_index = |slot: &mut Index| {
        if let Some(new) = index(slot) {
            *slot = new;
        }
    };
    match stmt {
        Stmt::For(node) => set_index(&mut Arc::make_mut(node).extent),
        Stmt::Block(node) => {
            let node = Arc::make_mut(node);
            for iter in &mut node.iters {
                set_index(&mut iter.extent);
                set_index(&mut iter.binding);
            }
            for guard in &mut node.guards {
                set_index(&mut guard.index);
                set_index(&mut guard.bound);
            }
        }
        Stmt::Store(node) => {
            let node = Arc::make_mut(node);
            node.indices.iter_mut().for_each(set_index);
            if let Some(new) = expr(&node.value) {
                node.value = new;
            }
        }
        Stmt::If(node) => {
            if let Some(new) = expr(&node.condition) {
                Arc::make_mut(node).condition = new;
            }
        }
        Stmt::Seq(_)
        | Stmt::Alloc(_)
        | Stmt::Intrinsic(_)
        | Stmt::Barrier
        | Stmt::Copies(_)
        | Stmt::Shuffle(_) => {}
    }
    for child in stmt.children_mut() {
        rewrite_stmt(child, index, expr);
    }
}

/// Replaces variables everywhere in a statement; `replace` gives `None` for those that stay.
pub fn substitute_stmt(stmt: &mut Stmt, replace: &dyn Fn(VarId) -> Option<Index>) {
    let index = |index: &Index| {
        let mut touched = false;
        index.for_each_var(&mut |var| touched |= replace(var).is_some());
        touched.then(|| index.substitute(replace))
    };
    rewrite_stmt(stmt, &index, &|expr| rewrite_indices(expr, &index));
}

/// The loop with an identity, if it is inside `stmt`.
pub fn find_loop(mut stmt: &Stmt, id: LoopId) -> Option<&Arc<For>> {
    while let Stmt::For(node) = stmt {
        if node.id == id {
            return Some(node);
        }
        stmt = &node.body;
    }
    stmt.each_child().find_map(|child| find_loop(child, id))
}

/// The block with an identity, if it is inside `stmt`.
pub fn find_block(mut stmt: &Stmt, id: BlockId) -> Option<&Arc<Block>> {
    while let Stmt::For(node) = stmt {
        stmt = &node.body;
    }
    match stmt {
        // There are no blocks inside blocks.
        Stmt::Block(node) => (node.id == id).then_some(node),
        _ => stmt.each_child().find_map(|child| find_block(child, id)),
    }
}

/// Calls `visit` with every block inside a statement, in program order.
pub fn for_each_block<'a>(mut stmt: &'a Stmt, visit: &mut impl FnMut(&'a Arc<Block>)) {
    while let Stmt::For(node) = stmt {
        stmt = &node.body;
    }
    match stmt {
        // There are no blocks inside blocks.
        Stmt::Block(node) => visit(node),
        _ => stmt.each_child().for_each(|child| for_each_block(child, visit)),
    }
}

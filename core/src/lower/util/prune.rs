//! Removes statements, and the loops, conditionals and allocations that do nothing without them.

use std::sync::Arc;

use crate::analysis::block::loads;
use crate::ids::BufferId;
use crate::simplify::may_fail;
use crate::stmt::Stmt;

/// The statement without those for which `goes` holds and without those that are then empty; `None` when nothing changes.
pub(in crate::lower) fn without(stmt: &Stmt, goes: &dyn Fn(&Stmt) -> bool) -> Option<Stmt> {
    if goes(stmt) {
        return Some(Stmt::nothing());
    }
    let children: Vec<Option<Stmt>> = stmt.each_child().map(|child| without(child, goes)).collect();
    if children.iter().all(Option::is_none) {
        return unused_allocation(stmt);
    }
    let mut stmt = stmt.clone();
    for (child, changed) in stmt.children_mut().into_iter().zip(children) {
        if let Some(changed) = changed {
            *child = changed;
        }
    }
    remove_empty(&mut stmt);
    Some(unused_allocation(&stmt).unwrap_or(stmt))
}

/// Removes children that do nothing, and the statement itself where nothing of it is left.
pub(in crate::lower) fn remove_empty(stmt: &mut Stmt) {
    let does_nothing = match stmt {
        Stmt::Seq(stmts) => {
            if stmts.iter().any(|child| matches!(child, Stmt::Seq(_))) {
                *stmt = Stmt::seq(stmts.iter().cloned());
            }
            return;
        }
        Stmt::If(node) => {
            if node.otherwise.as_ref().is_some_and(Stmt::is_nothing) {
                Arc::make_mut(node).otherwise = None;
            }
            // A check of an index that depends on data must stay.
            node.then.is_nothing() && node.otherwise.is_none() && !may_fail(&node.condition)
        }
        Stmt::For(node) => node.body.is_nothing(),
        Stmt::Alloc(node) => node.body.is_nothing(),
        Stmt::Intrinsic(node) => node.body.is_nothing(),
        Stmt::Shuffle(node) => node.body.is_nothing(),
        Stmt::Store(_) | Stmt::Block(_) | Stmt::Barrier | Stmt::Copies(_) => false,
    };
    if does_nothing {
        *stmt = Stmt::nothing();
    }
}

/// The body of an allocation that it makes no use of.
fn unused_allocation(stmt: &Stmt) -> Option<Stmt> {
    let Stmt::Alloc(node) = stmt else { return None };
    (!uses(&node.body, node.buffer)).then(|| node.body.clone())
}

fn uses(stmt: &Stmt, buffer: BufferId) -> bool {
    stores_to(stmt, buffer) || loads(stmt).iter().any(|access| access.buffer == buffer)
}

fn stores_to(stmt: &Stmt, buffer: BufferId) -> bool {
    match stmt {
        Stmt::Store(node) => node.buffer == buffer,
        _ => stmt.each_child().any(|child| stores_to(child, buffer)),
    }
}

//! The place of each intermediate: the innermost statements that contain all its accesses.
//!
//! A buffer goes into a loop only when each iteration starts by storing to it, so that no value is
//! carried from one iteration to the next, and never into a vectorized loop, whose iterations would
//! each need their own. Inside a parallel loop it belongs to one thread.

use std::sync::Arc;

use crate::expr::{BinaryOp, ExprKind};
use crate::ids::{BufferId, VarId};
use crate::lower::access::{accesses, accesses_directly, loads_from};
use crate::lower::guards::mentions;
use crate::lower::{LowerError, LowerOptions};
use crate::program::Program;
use crate::stmt::{Alloc, For, If, LoopKind, Stmt};

/// Allocates every intermediate that the body uses.
pub(super) fn place_buffers(program: &mut Program, _: &LowerOptions) -> Result<(), LowerError> {
    let intermediates: Vec<BufferId> =
        program.buffers().map(|(id, _)| id).filter(|id| program.access(*id).is_none()).collect();
    for buffer in intermediates {
        if accesses(&program.body, buffer) {
            place(&mut program.body, buffer);
        }
    }
    Ok(())
}

/// Puts the allocation around what accesses the buffer inside `stmt`, which does.
fn place(stmt: &mut Stmt, buffer: BufferId) {
    match stmt {
        Stmt::Seq(stmts) => {
            let (Some(first), Some(last)) = (
                stmts.iter().position(|child| accesses(child, buffer)),
                stmts.iter().rposition(|child| accesses(child, buffer)),
            ) else {
                return;
            };
            let stmts = Arc::make_mut(stmts);
            if first == last {
                return place(&mut stmts[first], buffer);
            }
            let body = Stmt::seq(stmts.drain(first..=last));
            stmts.insert(first, allocate(buffer, body));
            if stmts.len() == 1 {
                *stmt = stmts.remove(0);
            }
        }
        Stmt::For(node) if starts_anew(node, buffer) => place(&mut Arc::make_mut(node).body, buffer),
        Stmt::If(node) if is_in_one_branch(node, buffer) => {
            let node = Arc::make_mut(node);
            let is_in_then = accesses(&node.then, buffer);
            if let Some(branch) = if is_in_then { Some(&mut node.then) } else { node.otherwise.as_mut() } {
                place(branch, buffer);
            }
        }
        Stmt::Alloc(node) => place(&mut Arc::make_mut(node).body, buffer),
        Stmt::For(_) | Stmt::If(_) | Stmt::Store(_) | Stmt::Block(_) => wrap(stmt, buffer),
    }
}

fn wrap(stmt: &mut Stmt, buffer: BufferId) {
    let body = std::mem::replace(stmt, Stmt::nothing());
    *stmt = allocate(buffer, body);
}

fn allocate(buffer: BufferId, body: Stmt) -> Stmt {
    Stmt::Alloc(Arc::new(Alloc { buffer, body }))
}

/// Whether one branch of a conditional has all of its accesses to a buffer.
fn is_in_one_branch(node: &If, buffer: BufferId) -> bool {
    let in_otherwise = node.otherwise.as_ref().is_some_and(|stmt| accesses(stmt, buffer));
    !loads_from(&node.condition, buffer) && accesses(&node.then, buffer) != in_otherwise
}

/// Whether each iteration of a loop stores to the buffer before it reads from it.
fn starts_anew(node: &For, buffer: BufferId) -> bool {
    node.kind != LoopKind::Vectorized && first_access(&node.body, buffer, node.var) == Some(First::Store)
}

/// What happens to a buffer first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    Store,
    /// A load, or a store that may not happen in every iteration.
    Other,
}

/// The first access to a buffer, in the order of execution. A store that only happens when loop `var`
/// is at one value (the initial value of a reduction that stayed in its place) does not count.
fn first_access(stmt: &Stmt, buffer: BufferId, var: VarId) -> Option<First> {
    match stmt {
        Stmt::Store(store) if accesses_directly(stmt, buffer) => {
            let indices_load = store
                .indices
                .iter()
                .any(|index| loads_from(&crate::expr::Expr::index(index.clone()), buffer));
            let is_pure = store.buffer == buffer && !loads_from(&store.value, buffer) && !indices_load;
            Some(if is_pure { First::Store } else { First::Other })
        }
        Stmt::If(_) if accesses_directly(stmt, buffer) => Some(First::Other),
        Stmt::If(node) => {
            let found = [Some(&node.then), node.otherwise.as_ref()]
                .into_iter()
                .flatten()
                .find_map(|branch| first_access(branch, buffer, var))?;
            let is_single = matches!(node.condition.kind(), ExprKind::Binary(BinaryOp::Eq, ..));
            Some(if is_single && mentions(&node.condition, var) { First::Other } else { found })
        }
        _ => stmt.children().into_iter().find_map(|child| first_access(child, buffer, var)),
    }
}

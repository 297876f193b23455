//! Buffers that nothing reads: their stores, and their allocations, disappear.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::analysis::block::loads;
use crate::ids::BufferId;
use crate::lower::{LowerError, LowerOptions};
use crate::program::Program;
use crate::simplify::may_fail;
use crate::stmt::Stmt;

/// Removes stores to intermediates that are never read, and loops, conditionals and allocations around
/// nothing.
pub(super) fn remove_dead_stores(program: &mut Program, _: &LowerOptions) -> Result<(), LowerError> {
    loop {
        let read: FxHashSet<BufferId> = loads(&program.body).iter().map(|access| access.buffer).collect();
        let is_dead = |buffer: BufferId| program.access(buffer).is_none() && !read.contains(&buffer);
        match without_dead(&program.body, &is_dead) {
            Some(body) => program.body = body,
            None => return Ok(()),
        }
    }
}

/// The statement without dead stores; `None` when there are none.
fn without_dead(stmt: &Stmt, is_dead: &dyn Fn(BufferId) -> bool) -> Option<Stmt> {
    match stmt {
        // A check of an index that depends on data must stay.
        Stmt::Store(node) => (is_dead(node.buffer) && !may_fail(&node.value)).then(Stmt::nothing),
        Stmt::Seq(stmts) => {
            let changed: Vec<Option<Stmt>> = stmts.iter().map(|stmt| without_dead(stmt, is_dead)).collect();
            changed.iter().any(Option::is_some).then(|| {
                Stmt::seq(stmts.iter().zip(changed).map(|(old, new)| new.unwrap_or_else(|| old.clone())))
            })
        }
        Stmt::For(node) => {
            let body = without_dead(&node.body, is_dead)?;
            if body.is_nothing() {
                return Some(body);
            }
            let mut node = node.clone();
            Arc::make_mut(&mut node).body = body;
            Some(Stmt::For(node))
        }
        Stmt::Alloc(node) => {
            let body = match without_dead(&node.body, is_dead) {
                Some(body) => body,
                None if is_dead(node.buffer) && !stores_to(&node.body, node.buffer) => node.body.clone(),
                None => return None,
            };
            if body.is_nothing() || !stores_to(&body, node.buffer) {
                return Some(body);
            }
            let mut node = node.clone();
            Arc::make_mut(&mut node).body = body;
            Some(Stmt::Alloc(node))
        }
        Stmt::If(node) => {
            let then = without_dead(&node.then, is_dead);
            let otherwise = node.otherwise.as_ref().and_then(|stmt| without_dead(stmt, is_dead));
            if then.is_none() && otherwise.is_none() {
                return None;
            }
            let mut node = node.clone();
            let edited = Arc::make_mut(&mut node);
            edited.then = then.unwrap_or_else(|| edited.then.clone());
            edited.otherwise =
                otherwise.or_else(|| edited.otherwise.take()).filter(|stmt| !stmt.is_nothing());
            let does_nothing = edited.then.is_nothing() && edited.otherwise.is_none();
            Some(if does_nothing && !may_fail(&edited.condition) { Stmt::nothing() } else { Stmt::If(node) })
        }
        Stmt::Intrinsic(node) => {
            let body = without_dead(&node.body, is_dead)?;
            if body.is_nothing() {
                return Some(body);
            }
            let mut node = node.clone();
            Arc::make_mut(&mut node).body = body;
            Some(Stmt::Intrinsic(node))
        }
        Stmt::Block(_) => None,
    }
}

fn stores_to(stmt: &Stmt, buffer: BufferId) -> bool {
    match stmt {
        Stmt::Store(node) => node.buffer == buffer,
        _ => stmt.children().into_iter().any(|child| stores_to(child, buffer)),
    }
}

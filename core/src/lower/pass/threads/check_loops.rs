//! Refuses loops over threads whose iterations depend on each other through shared memory.
//!
//! ```text
//! bound thread_x for t in 0..13 {
//!   for v in 0..3 { s[t*3 + v] = x[t*3 + v] }
//!   for v in 0..3 { s[t*3 + v + 1] = x[t*3 + v + 1] }   // thread t + 1 stores the last of these elements, too
//!   …
//! }
//! ```
//!
//! Executed one after the other, the iterations store equal values. Executed at the same time, they race, and no barrier can stand
//! between them: a thread would have to wait for others in the middle of its iteration.

use super::conflict::{Axes, conflict, shared_accesses};
use super::insert_barriers::is_over_threads;
use crate::lower::LowerError;
use crate::program::{Program, Scope};
use crate::stmt::Stmt;

/// Checks each outermost loop over threads in a nest.
///
/// # Errors
///
/// [`LowerError::Scope`] where different threads of one loop may access an element of shared memory that one of them stores.
pub(super) fn check_loops(program: &Program, axes: &Axes, stmt: &Stmt) -> Result<(), LowerError> {
    match stmt {
        Stmt::For(node) if is_over_threads(node) => check_loop(program, axes, stmt),
        _ => stmt.each_child().try_for_each(|child| check_loops(program, axes, child)),
    }
}

fn check_loop(program: &Program, axes: &Axes, stmt: &Stmt) -> Result<(), LowerError> {
    let mut accesses = shared_accesses(program, axes, stmt);
    accesses.retain(|access| program.buffer(access.buffer).scope == Scope::Shared || access.is_by_warp());
    let stores = accesses.iter().filter(|access| access.is_store);
    let raced = stores.into_iter().find(|store| accesses.iter().any(|other| conflict(axes, store, other)));
    let Some(store) = raced else { return Ok(()) };
    let buffer = program.buffer(store.buffer);
    Err(LowerError::Scope {
        buffer: buffer.name.to_string(),
        scope: buffer.scope.text(),
        problem: "threads of one loop access elements that another one of them stores; compute it outside of that loop, or make it `local`",
    })
}

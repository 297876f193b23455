//! Removes buffers that nothing reads: their stores, and their allocations.

use rustc_hash::FxHashSet;

use crate::analysis::block::loads;
use crate::ids::BufferId;
use crate::lower::util::prune::without;
use crate::lower::{LowerError, LowerOptions};
use crate::program::Program;
use crate::simplify::may_fail;
use crate::stmt::Stmt;

/// Removes stores to intermediates that are never read, and loops, conditionals and allocations around
/// nothing.
pub(in crate::lower) fn remove_dead_stores(
    program: &mut Program,
    _: &LowerOptions,
) -> Result<(), LowerError> {
    loop {
        let read: FxHashSet<BufferId> = loads(&program.body).iter().map(|access| access.buffer).collect();
        let is_dead = |buffer: BufferId| program.access(buffer).is_none() && !read.contains(&buffer);
        // A check of an index that depends on data must stay.
        let goes =
            |stmt: &Stmt| matches!(stmt, Stmt::Store(node) if is_dead(node.buffer) && !may_fail(&node.value));
        match without(&program.body, &goes) {
            Some(body) => program.body = body,
            None => return Ok(()),
        }
    }
}

//! Binds what no rule has bound.

use tilewright_core::analysis::scope::{blocks, loops_around};
use tilewright_core::schedule::{Schedule, ScheduleError};
use tilewright_core::stmt::{LoopKind, Symbol};

use crate::gpu::by_element::one_thread_per_element;

/// Binds the elements of each block in serial loops of its own to threads.
pub(super) fn bind_unbound(schedule: &mut Schedule) -> Result<(), ScheduleError> {
    let names: Vec<Symbol> =
        blocks(&schedule.program().body).into_iter().map(|block| block.name.clone()).collect();
    for name in names {
        let block = schedule.get_block(&name)?;
        let id = schedule.values().block(block)?;
        let path = loops_around(&schedule.program().body, id).unwrap_or_default();
        if path.iter().all(|node| node.kind == LoopKind::Serial) {
            // One thread executes a block whose elements cannot be bound, such as a single result.
            let mut attempt = schedule.clone();
            if one_thread_per_element(&mut attempt, block).is_ok() {
                *schedule = attempt;
            }
        }
    }
    Ok(())
}

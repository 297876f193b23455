//! One thread for each update of a histogram or a scatter.

use tilewright_core::analysis::block::is_ordered;
use tilewright_core::schedule::{BlockRv, Schedule, ScheduleError};
use tilewright_core::stmt::IterKind;

use super::by_element::{Threads, bind_fused, fuse_all};
use crate::space::rules::block::{block_of, domain_size, has_own_loops};

/// [`bind_updates`] with the usual number of threads.
pub(super) fn one_thread_per_update(schedule: &mut Schedule, block: BlockRv) -> Result<bool, ScheduleError> {
    bind_updates(schedule, block, Threads::Usual)
}

/// Makes ordered updates whose order makes no difference single steps, and binds all of them to threads. The answer is whether the block has ordered
/// updates in loops of its own.
///
/// # Errors
/// When the order of the updates matters.
pub(super) fn bind_updates(
    schedule: &mut Schedule,
    block: BlockRv,
    threads: Threads,
) -> Result<bool, ScheduleError> {
    let found = block_of(schedule, block)?;
    if !is_ordered(&found) || !has_own_loops(schedule.program(), &found) {
        return Ok(false);
    }
    schedule.update_atomically(block)?;
    let loops = schedule.get_loops(block)?;
    let fused = fuse_all(schedule, &loops)?;
    let sizes = [IterKind::Spatial, IterKind::Ordered].map(|kind| domain_size(&found, kind));
    let updates = sizes.into_iter().try_fold(1_i64, |updates, size| updates.checked_mul(size?));
    bind_fused(schedule, fused, updates, 1, threads)?;
    Ok(true)
}

//! One thread for each element of a result, or for a few beside each other.

use tilewright_core::analysis::block::{is_spatial, single_store};
use tilewright_core::schedule::{BlockRv, LoopRv, Schedule, ScheduleError};
use tilewright_core::stmt::IterKind;
use tilewright_core::thread_axis::ThreadAxis;

use crate::space::rules::add_rfactor::partition_loops;
use crate::space::rules::block::{block_of, domain_size, has_own_loops};

/// The threads of a block: eight warps, of which several blocks fit a multiprocessor at once.
const THREADS: i64 = 256;

/// The threads of a warp.
const WARP: i64 = 32;

/// The most bytes that one instruction accesses.
const MAX_BYTES: i64 = 16;

/// Binds all elements of a result to threads. A reduction is a serial loop of its thread; without one, a thread computes as many
/// elements as one access takes.
pub(super) fn one_thread_per_element(schedule: &mut Schedule, block: BlockRv) -> Result<bool, ScheduleError> {
    let found = block_of(schedule, block)?;
    if !has_own_loops(schedule.program(), &found) {
        return Ok(false);
    }
    let loops = schedule.get_loops(block)?;
    let (spatial, reduce) = partition_loops(schedule, block, &loops)?;
    if spatial.is_empty() {
        return Ok(false);
    }
    if !reduce.is_empty() {
        schedule.reorder(&[spatial.as_slice(), reduce.as_slice()].concat())?;
    }
    let elements = domain_size(&found, IterKind::Spatial);
    let bytes = single_store(&found).map_or(MAX_BYTES, |store| store.value.dtype().bytes() as i64);
    let is_wide = is_spatial(&found) && reduce.is_empty();
    let lanes = match elements {
        Some(elements) if is_wide => lanes(elements, MAX_BYTES / bytes),
        _ => 1,
    };
    let fused = fuse_all(schedule, &spatial)?;
    let threads = elements.map_or(THREADS, |elements| threads(elements / lanes));
    let factors = [None, Some(threads), Some(lanes)];
    let count = if lanes > 1 { 3 } else { 2 };
    let parts = schedule.split(fused, &factors[..count])?;
    schedule.bind(parts[0], ThreadAxis::BlockX)?;
    schedule.bind(parts[1], ThreadAxis::ThreadX)?;
    if let Some(lane) = parts.get(2) {
        schedule.vectorize(*lane)?;
    }
    Ok(true)
}

/// One loop in place of some that follow each other.
pub(super) fn fuse_all(schedule: &mut Schedule, loops: &[LoopRv]) -> Result<LoopRv, ScheduleError> {
    match loops {
        [single] => Ok(*single),
        _ => schedule.fuse(loops),
    }
}

/// The largest power of two up to `most` that divides the number of elements.
fn lanes(elements: i64, most: i64) -> i64 {
    let mut lanes = most.max(1);
    while elements % lanes != 0 {
        lanes /= 2;
    }
    lanes
}

/// Whole warps, and no more of them than there is work for.
fn threads(work: i64) -> i64 {
    (work.clamp(1, THREADS) + WARP - 1) / WARP * WARP
}

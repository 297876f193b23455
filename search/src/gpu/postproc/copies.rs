//! Binds the loops of copies that the threads of a block make together.

use tilewright_core::annotation::VECTOR_FETCH;
use tilewright_core::schedule::{BlockRv, Schedule, ScheduleError};
use tilewright_core::thread_axis::ThreadAxis;

use super::{extent, fused, unroll_one};
use crate::space::rules::block::block_of;

/// The most rounds of a copy that are written out one after the other, so that their loads overlap.
const MAX_ROUNDS: i64 = 16;

/// Has all threads of a block copy a tile: neighbours copy elements beside each other, each as many as one access takes. `around` loops
/// are shared with the blocks that read the copy. `threads` has the axes of the threads with their numbers, the slowest first.
pub(super) fn bind_copy(
    schedule: &mut Schedule,
    copy: BlockRv,
    around: usize,
    threads: &[(ThreadAxis, i64)],
) -> Result<(), ScheduleError> {
    let own = schedule.get_loops(copy)?.split_off(around);
    let Some(innermost) = own.last() else { return Ok(()) };
    let found = block_of(schedule, copy)?;
    let wanted = VECTOR_FETCH.get(&found.annotations).unwrap_or(1).max(1);
    let fits = found.guards.is_empty() && extent(schedule, *innermost)? % wanted == 0;
    let width = if fits { wanted } else { 1 };
    let Some(elements) = fused(schedule, &own)? else { return Ok(()) };
    // The parts of a copy are guarded as wholes, so that a vector needs no condition inside.
    let vectors = schedule.split(elements, &[None, Some(width)])?;
    let factors: Vec<Option<i64>> =
        std::iter::once(None).chain(threads.iter().map(|(_, count)| Some(*count))).collect();
    let mut parts = schedule.split(vectors[0], &factors)?;
    parts.rotate_left(1);
    schedule.reorder(&parts)?;
    for (part, (axis, _)) in parts.iter().zip(threads) {
        schedule.bind(*part, *axis)?;
    }
    let rounds = parts[threads.len()];
    if extent(schedule, rounds)? <= MAX_ROUNDS {
        unroll_one(schedule, rounds)?;
    }
    if width > 1 {
        schedule.vectorize(vectors[1])?;
    }
    Ok(())
}

//! Binds the loops of copies that the threads of a block make together.

use tilewright_core::annotation::VECTOR_FETCH;
use tilewright_core::schedule::{BlockRv, Schedule, ScheduleError};
use tilewright_core::task_mapping::TaskMapping;
use tilewright_core::thread_axis::ThreadAxis;

use super::mapping::{divide, refused};
use super::{extent, fused, unroll_one};
use crate::space::rules::block::block_of;

/// The most rounds of a copy that are written out one after the other, so that their loads overlap.
const MAX_ROUNDS: i64 = 16;

/// Has all threads of a block copy a tile: neighbours copy elements beside each other, each as many as one access takes. `around` loops
/// are shared with the blocks that read the copy. `threads` has the axes of the threads with their numbers, the slowest first.
///
/// The mapping of elements to threads is `repeat(rounds) * spatial(threads) * repeat(width)`.
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
    let vectors = extent(schedule, elements)? / width;
    let workers: i64 = threads.iter().map(|(_, count)| count).product();
    let lanes = TaskMapping::repeat(&[width]).map_err(refused)?;
    let mapping = TaskMapping::covering(&[vectors], workers).and_then(|all| all.compose(&lanes));
    let mapped = divide(schedule, &[elements], &mapping.map_err(refused)?)?;
    let ([workers], [rounds, vector]) = (&mapped.workers[..], &mapped.tasks[..]) else {
        return Err(ScheduleError::BadLoopList);
    };
    let counts: Vec<Option<i64>> = threads.iter().map(|(_, count)| Some(*count)).collect();
    let of_axes = if counts.len() > 1 { schedule.split(*workers, &counts)?.to_vec() } else { vec![*workers] };
    for (part, (axis, _)) in of_axes.iter().zip(threads) {
        schedule.bind(*part, *axis)?;
    }
    if extent(schedule, *rounds)? <= MAX_ROUNDS {
        unroll_one(schedule, *rounds)?;
    }
    if width > 1 {
        schedule.vectorize(*vector)?;
    }
    Ok(())
}

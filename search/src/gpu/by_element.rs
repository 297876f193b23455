//! One thread for each element of a result, or for a few beside each other.

use tilewright_core::analysis::block::{is_spatial, single_store};
use tilewright_core::schedule::{BlockRv, IntRv, LoopRv, Schedule, ScheduleError};
use tilewright_core::stmt::IterKind;
use tilewright_core::thread_axis::{ThreadAxis, WARP};

use crate::space::rules::add_rfactor::partition_loops;
use crate::space::rules::block::{block_of, domain_size, has_own_loops};

/// The threads of a block: eight warps, of which several blocks fit a multiprocessor at once.
const THREADS: i64 = 256;

/// The most bytes that one instruction accesses.
const MAX_BYTES: i64 = 16;

/// How many threads form a block.
#[derive(Clone, Copy, Debug)]
pub(super) enum Threads {
    /// Eight warps, or as many as there is work for.
    Usual,
    /// One of some numbers, which have probabilities, as a decision.
    Drawn(&'static [(i64, f64)]),
}

/// [`bind_elements`] with the usual number of threads.
pub(super) fn one_thread_per_element(schedule: &mut Schedule, block: BlockRv) -> Result<bool, ScheduleError> {
    bind_elements(schedule, block, Threads::Usual)
}

/// Binds all elements of a result to threads. A reduction is a serial loop of its thread; without one, a thread computes as many
/// elements as one access takes. The answer is whether the block has elements in loops of its own.
pub(super) fn bind_elements(
    schedule: &mut Schedule,
    block: BlockRv,
    threads: Threads,
) -> Result<bool, ScheduleError> {
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
    let widest = match elements {
        Some(elements) if is_wide => lanes(elements, MAX_BYTES / bytes),
        _ => 1,
    };
    let fused = fuse_all(schedule, &spatial)?;
    bind_fused(schedule, fused, elements, widest, threads)?;
    Ok(true)
}

/// Binds a loop over all elements to threads, of which each takes up to `widest` elements beside each other.
pub(super) fn bind_fused(
    schedule: &mut Schedule,
    fused: LoopRv,
    elements: Option<i64>,
    widest: i64,
    threads: Threads,
) -> Result<(), ScheduleError> {
    let (parts, has_lanes) = match threads {
        Threads::Usual => {
            let threads = elements.map_or(THREADS, |elements| usual_threads(elements / widest));
            let factors = [None, Some(threads), Some(widest)];
            (schedule.split(fused, &factors[..if widest > 1 { 3 } else { 2 }])?, widest > 1)
        }
        Threads::Drawn(choices) => {
            let most = elements.map_or(THREADS, usual_threads_at_most);
            let drawn = draw(schedule, choices.iter().copied().filter(|(threads, _)| *threads <= most))?;
            let widths = (0..5).map(|power| (1 << power, 1.0)).filter(|(width, _)| *width <= widest);
            let width = if widest > 1 { Some(draw(schedule, widths)?) } else { None };
            let factors = [None, Some(drawn), width];
            (schedule.split(fused, &factors[..if widest > 1 { 3 } else { 2 }])?, widest > 1)
        }
    };
    schedule.bind(parts[0], ThreadAxis::BlockX)?;
    schedule.bind(parts[1], ThreadAxis::ThreadX)?;
    if has_lanes {
        schedule.vectorize(parts[2])?;
    }
    Ok(())
}

/// One of some numbers by their probabilities; the number of threads of a warp where there are none.
fn draw(schedule: &mut Schedule, choices: impl Iterator<Item = (i64, f64)>) -> Result<IntRv, ScheduleError> {
    let (mut numbers, mut weights): (Vec<i64>, Vec<f64>) = choices.unzip();
    if numbers.is_empty() {
        (numbers, weights) = (vec![WARP], vec![1.0]);
    }
    schedule.sample_categorical(&numbers, &weights)
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
fn usual_threads(work: i64) -> i64 {
    (work.clamp(1, THREADS) + WARP - 1) / WARP * WARP
}

/// The most threads of a block that are worth drawing for some elements.
fn usual_threads_at_most(elements: i64) -> i64 {
    (elements.clamp(1, 1024) + WARP - 1) / WARP * WARP
}

//! One block of threads for each element of a result that is a long reduction.

use tilewright_core::analysis::block::{is_reduction, loads};
use tilewright_core::program::Scope;
use tilewright_core::schedule::{BlockRv, LoopRv, Schedule, ScheduleError};
use tilewright_core::stmt::{Block, IterKind};
use tilewright_core::thread_axis::ThreadAxis;

use super::by_element::fuse_all;
use crate::space::rules::add_rfactor::partition_loops;
use crate::space::rules::block::{block_of, domain_size, has_own_loops, has_trivial_bindings};

/// The fewest threads that are worth it.
const LEAST_THREADS: i64 = 32;

/// The most threads of a block without a search.
const USUAL_THREADS: i64 = 256;

/// The most values that one thread adds up at the end.
const MAX_LAST: i64 = 16;

/// With as many results, threads that reduce on their own fill the machine.
const MANY_RESULTS: i64 = 1 << 15;

/// [`reduce_in_block`] with the usual number of threads, where that suits the block.
pub(super) fn reduce_as_usual(schedule: &mut Schedule, block: BlockRv) -> Result<bool, ScheduleError> {
    let found = block_of(schedule, block)?;
    match threads_for(&found, USUAL_THREADS) {
        Some(threads) => reduce_in_block(schedule, block, threads),
        None => Ok(false),
    }
}

/// Reduces in three steps: each thread a part of the values, then a few threads a part of these sums each, then one thread the
/// rest. The sums are in memory that the threads share. The number of threads divides that of the values.
pub(super) fn reduce_in_block(
    schedule: &mut Schedule,
    block: BlockRv,
    threads: i64,
) -> Result<bool, ScheduleError> {
    let found = block_of(schedule, block)?;
    if !has_own_loops(schedule.program(), &found) || !has_trivial_bindings(&found) {
        return Ok(false);
    }
    let loops = schedule.get_loops(block)?;
    let (spatial, reduce) = partition_loops(schedule, block, &loops)?;
    schedule.reorder(&[spatial.as_slice(), reduce.as_slice()].concat())?;
    let values = fuse_all(schedule, &reduce)?;
    let parts = schedule.split(values, &[None, Some(threads)])?;
    let (partial, sum) = schedule.rfactor(block, parts[1], -1)?;
    schedule.set_scope(partial, 0, Scope::Shared)?;
    let mut stages = vec![partial];
    let mut last = sum;
    let width = largest_divisor(threads, MAX_LAST);
    if width > 1 && width < threads {
        let loops = schedule.get_loops(sum)?;
        let parts = schedule.split(loops[loops.len() - 1], &[None, Some(width)])?;
        let (second, rest) = schedule.rfactor(sum, parts[1], -1)?;
        schedule.set_scope(second, 0, Scope::Shared)?;
        stages.push(second);
        last = rest;
    }
    let loops = schedule.get_loops(last)?;
    let rows = match &loops[..loops.len() - 1] {
        [] => schedule.add_unit_loop(loops[0])?,
        spatial => fuse_all(schedule, spatial)?,
    };
    for stage in stages.iter().rev() {
        schedule.compute_at(*stage, rows)?;
        let loops = schedule.get_loops(*stage)?;
        let (spatial, _) = partition_loops(schedule, *stage, &loops[1..])?;
        let [parts] = spatial[..] else { return Ok(false) };
        bind_all(schedule, parts, threads)?;
    }
    schedule.bind(rows, ThreadAxis::BlockX)?;
    Ok(true)
}

/// Binds a loop to all threads of a block, of which the first ones have something to do.
fn bind_all(schedule: &mut Schedule, target: LoopRv, threads: i64) -> Result<(), ScheduleError> {
    let parts = schedule.split(target, &[None, Some(threads)])?;
    schedule.bind(parts[1], ThreadAxis::ThreadX)
}

/// The number of threads, up to `most`, that reduce together; `None` when the reduction is short, cannot be divided evenly, or is better
/// done by one thread.
pub(super) fn threads_for(block: &Block, most: i64) -> Option<i64> {
    let values = domain_size(block, IterKind::Reduce)?;
    let results = domain_size(block, IterKind::Spatial)?;
    let is_along_rows = loads(&block.body).iter().any(|access| {
        let reduces = |iter: &&tilewright_core::stmt::Iter| iter.kind == IterKind::Reduce;
        let Some(last) = access.indices.last() else { return false };
        block.iters.iter().filter(reduces).any(|iter| last.mentions(iter.var))
    });
    let is_worth_it = results < MANY_RESULTS && (is_along_rows || results < USUAL_THREADS);
    let threads = largest_divisor(values, most);
    (is_reduction(block) && is_worth_it && threads >= LEAST_THREADS).then_some(threads)
}

/// The largest divisor of a number up to `most`.
fn largest_divisor(number: i64, most: i64) -> i64 {
    (1..=most).rev().find(|divisor| number % divisor == 0).unwrap_or(1)
}

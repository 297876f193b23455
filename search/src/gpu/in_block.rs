//! One block of threads for each element of a result that is a long reduction.

use tilewright_core::analysis::block::{is_reduction, loads};
use tilewright_core::program::Scope;
use tilewright_core::schedule::{BlockRv, Schedule, ScheduleError};
use tilewright_core::stmt::{Block, IterKind};
use tilewright_core::thread_axis::ThreadAxis;

use super::by_element::fuse_all;
use crate::space::rules::add_rfactor::partition_loops;
use crate::space::rules::block::{block_of, domain_size, has_own_loops, has_trivial_bindings};

/// The fewest threads that are worth it.
const LEAST_THREADS: i64 = 32;

/// The most threads of a block without a search.
const USUAL_THREADS: i64 = 256;

/// With as many results, threads that reduce short rows on their own fill the machine. Along long rows, neighbours would access memory far
/// apart.
const MANY_RESULTS: i64 = 1 << 15;

/// [`reduce_in_block`] with the usual number of threads, where that suits the block.
pub(super) fn reduce_as_usual(schedule: &mut Schedule, block: BlockRv) -> Result<bool, ScheduleError> {
    let found = block_of(schedule, block)?;
    match threads_for(&found, USUAL_THREADS) {
        Some(threads) => reduce_in_block(schedule, block, threads),
        None => Ok(false),
    }
}

/// Reduces in two steps: each thread a part of the values, then the threads combine their parts.
pub(super) fn reduce_in_block(
    schedule: &mut Schedule,
    block: BlockRv,
    threads: i64,
) -> Result<bool, ScheduleError> {
    let found = block_of(schedule, block)?;
    if !has_own_loops(schedule.program(), &found) || !has_trivial_bindings(&found) {
        return Ok(false);
    }
    let (partial, sum) = factor(schedule, block, threads)?;
    let loops = schedule.get_loops(sum)?;
    let rows = match &loops[..loops.len() - 1] {
        [] => schedule.add_unit_loop(loops[0])?,
        spatial => fuse_all(schedule, spatial)?,
    };
    schedule.compute_at(partial, rows)?;
    let loops = schedule.get_loops(partial)?;
    let (spatial, _) = partition_loops(schedule, partial, &loops[1..])?;
    let [parts] = spatial[..] else { return Ok(false) };
    schedule.bind(parts, ThreadAxis::ThreadX)?;
    bind_innermost(schedule, sum)?;
    schedule.bind(rows, ThreadAxis::BlockX)?;
    Ok(true)
}

/// A reduction in two blocks: that of the values that each of some threads combines, which its registers hold, and that of the result.
pub(super) fn factor(
    schedule: &mut Schedule,
    block: BlockRv,
    threads: i64,
) -> Result<(BlockRv, BlockRv), ScheduleError> {
    let loops = schedule.get_loops(block)?;
    let (spatial, reduce) = partition_loops(schedule, block, &loops)?;
    schedule.reorder(&[spatial.as_slice(), reduce.as_slice()].concat())?;
    let values = fuse_all(schedule, &reduce)?;
    let parts = schedule.split(values, &[None, Some(threads)])?;
    let (partial, sum) = schedule.rfactor(block, parts[1], -1)?;
    schedule.set_scope(partial, 0, Scope::Local)?;
    Ok((partial, sum))
}

/// Lets the threads combine the values of a block.
pub(super) fn bind_innermost(schedule: &mut Schedule, sum: BlockRv) -> Result<(), ScheduleError> {
    let loops = schedule.get_loops(sum)?;
    schedule.bind(loops[loops.len() - 1], ThreadAxis::ThreadX)
}

/// The number of threads, up to `most`, that reduce together; `None` when the reduction is short, or is better done by one thread.
pub(super) fn threads_for(block: &Block, most: i64) -> Option<i64> {
    let values = domain_size(block, IterKind::Reduce)?;
    let results = domain_size(block, IterKind::Spatial)?;
    let is_along_rows = loads(&block.body).iter().any(|access| {
        let reduces = |iter: &&tilewright_core::stmt::Iter| iter.kind == IterKind::Reduce;
        let Some(last) = access.indices.last() else { return false };
        block.iters.iter().filter(reduces).any(|iter| last.mentions(iter.var))
    });
    let is_worth_it = match is_along_rows {
        true => results < MANY_RESULTS || values >= USUAL_THREADS,
        false => results < USUAL_THREADS,
    };
    let threads = (values.max(1) as u64).next_power_of_two().min(most as u64) as i64;
    (is_reduction(block) && is_worth_it && values >= LEAST_THREADS).then_some(threads)
}

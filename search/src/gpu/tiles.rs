//! Products of matrices and the like: each block of threads computes a tile of the result from tiles of the operands in shared
//! memory, and each thread a small tile of it in registers.

use tilewright_core::analysis::block::{is_reduction, loads, reads};
use tilewright_core::program::Scope;
use tilewright_core::schedule::{BlockRv, LoopRv, Schedule, ScheduleError};
use tilewright_core::stmt::{Block, IterKind};
use tilewright_core::thread_axis::ThreadAxis;

use super::by_element::fuse_all;
use crate::space::rules::add_rfactor::partition_loops;
use crate::space::rules::block::{block_of, has_own_loops, has_trivial_bindings, is_used_again};

/// Threads of a block along each of two axes.
const THREADS: i64 = 16;

/// Elements of a thread along each of these axes.
const ELEMENTS: i64 = 4;

/// Values of the reduction between two copies into shared memory.
const DEPTH: i64 = 16;

/// Tiles a reduction of which at least two operands are used again.
pub(super) fn tile_products(schedule: &mut Schedule, block: BlockRv) -> Result<bool, ScheduleError> {
    let found = block_of(schedule, block)?;
    if !suits(schedule, &found) {
        return Ok(false);
    }
    let copied = operands(&found);
    let loops = schedule.get_loops(block)?;
    let (spatial, reduce) = partition_loops(schedule, block, &loops)?;
    let [batch @ .., rows, columns] = &spatial[..] else { return Ok(false) };
    let result = schedule.cache_write(block, Scope::Local)?;
    let factors = [None, Some(THREADS), Some(ELEMENTS)];
    let rows = schedule.split(*rows, &factors)?;
    let columns = schedule.split(*columns, &factors)?;
    let steps = schedule.split(reduce[0], &[None, Some(DEPTH)])?;
    let mut order = batch.to_vec();
    order.extend([rows[0], columns[0], steps[0], rows[1], columns[1], steps[1]]);
    order.extend(&reduce[1..]);
    order.extend([rows[2], columns[2]]);
    schedule.reorder(&order)?;
    schedule.reverse_compute_at(result, columns[0])?;
    let blocks = batch.len() + 2;
    bind_tile(schedule, result, blocks)?;
    for number in copied.iter().rev() {
        let copy = schedule.cache_read(block, *number, Scope::Shared)?;
        schedule.compute_at(copy, steps[0])?;
        fetch_together(schedule, copy, blocks + 1)?;
    }
    let initial = schedule.decompose_reduction(block, steps[0])?;
    bind_initial(schedule, initial, blocks)?;
    schedule.bind(rows[1], ThreadAxis::ThreadY)?;
    schedule.bind(columns[1], ThreadAxis::ThreadX)?;
    schedule.unroll(rows[2])?;
    schedule.unroll(columns[2])?;
    if !batch.is_empty() {
        let fused = fuse_all(schedule, batch)?;
        schedule.bind(fused, ThreadAxis::BlockZ)?;
    }
    schedule.bind(rows[0], ThreadAxis::BlockY)?;
    schedule.bind(columns[0], ThreadAxis::BlockX)?;
    Ok(true)
}

fn suits(schedule: &Schedule, block: &Block) -> bool {
    let extents = |kind: IterKind| -> Option<Vec<i64>> {
        let iters = block.iters.iter().filter(|iter| iter.kind == kind);
        iters.map(|iter| iter.extent.as_constant()).collect()
    };
    let (Some(spatial), Some(reduce)) = (extents(IterKind::Spatial), extents(IterKind::Reduce)) else {
        return false;
    };
    let [.., rows, columns] = spatial[..] else { return false };
    is_reduction(block)
        && rows.min(columns) >= THREADS
        && reduce.first().is_some_and(|first| *first > 0)
        && has_own_loops(schedule.program(), block)
        && has_trivial_bindings(block)
        && operands(block).len() >= 2
}

/// The numbers of the operands that are used again.
fn operands(block: &Block) -> Vec<i64> {
    let accesses = loads(&block.body);
    let is_copied = |buffer| {
        accesses
            .iter()
            .filter(|access| access.buffer == buffer)
            .all(|access| is_used_again(block, access.indices))
    };
    let written = tilewright_core::analysis::block::writes(block);
    (0..)
        .zip(reads(block))
        .filter(|(_, buffer)| !written.contains(buffer) && is_copied(*buffer))
        .map(|(number, _)| number)
        .collect()
}

/// Binds the last two loops of a copy of the result as those that compute it.
fn bind_tile(schedule: &mut Schedule, block: BlockRv, around: usize) -> Result<(), ScheduleError> {
    let loops = schedule.get_loops(block)?;
    let [.., rows, columns] = &loops[around..] else { return Err(ScheduleError::BadDecision("two loops")) };
    let factors = [Some(THREADS), Some(ELEMENTS)];
    let rows = schedule.split(*rows, &factors)?;
    let columns = schedule.split(*columns, &factors)?;
    schedule.reorder(&[rows[0], columns[0], rows[1], columns[1]])?;
    bind_threads(schedule, [rows[0], columns[0]])?;
    schedule.unroll(rows[1])?;
    schedule.unroll(columns[1])
}

fn bind_initial(schedule: &mut Schedule, block: BlockRv, around: usize) -> Result<(), ScheduleError> {
    let loops = schedule.get_loops(block)?;
    let [rows, columns, inner @ ..] = &loops[around..] else {
        return Err(ScheduleError::BadDecision("two loops"));
    };
    bind_threads(schedule, [*rows, *columns])?;
    inner.iter().try_for_each(|target| schedule.unroll(*target))
}

fn bind_threads(schedule: &mut Schedule, [rows, columns]: [LoopRv; 2]) -> Result<(), ScheduleError> {
    schedule.bind(rows, ThreadAxis::ThreadY)?;
    schedule.bind(columns, ThreadAxis::ThreadX)
}

/// Has all threads of a block copy a tile, neighbours beside each other.
fn fetch_together(schedule: &mut Schedule, copy: BlockRv, around: usize) -> Result<(), ScheduleError> {
    let loops = schedule.get_loops(copy)?;
    let elements = fuse_all(schedule, &loops[around..])?;
    let parts = schedule.split(elements, &[None, Some(THREADS), Some(THREADS)])?;
    // The serial loop goes inside, where no barrier is needed between its iterations.
    schedule.reorder(&[parts[1], parts[2], parts[0]])?;
    bind_threads(schedule, [parts[1], parts[2]])
}

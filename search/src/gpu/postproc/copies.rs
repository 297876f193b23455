//! Binds the loops of copies that the threads of a block make together.

use tilewright_core::analysis::block::{reads, single_store};
use tilewright_core::analysis::region::{AccessKind, bound_accesses};
use tilewright_core::annotation::VECTOR_FETCH;
use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::index::Index;
use tilewright_core::program::Scope;
use tilewright_core::schedule::{BlockRv, LoopRv, Schedule, ScheduleError};
use tilewright_core::stmt::Block;
use tilewright_core::task_mapping::TaskMapping;
use tilewright_core::thread_axis::{ThreadAxis, WARP};

use super::mapping::{divide, refused};
use super::{extent, fused, unroll_one, variable};
use crate::gpu::features::stride_of;
use crate::space::rules::block::block_of;

/// A sector of device memory and a bank of shared memory, in bytes, and the number of banks.
const SECTOR: i64 = 32;
const BANK: i64 = 4;
const BANKS: i64 = 32;

/// The most rounds of a copy that are written out one after the other, so that their loads overlap.
const MAX_ROUNDS: i64 = 16;

/// The most rounds that are written out of a copy with more.
const ROUNDS_TOGETHER: i64 = 8;

/// Has all threads of a block copy a tile: neighbours copy elements that lie beside each other in device memory, each as many as one access
/// takes. `around` loops are shared with the blocks that read the copy. `threads` has the axes of the threads with their numbers, the slowest first.
///
/// The mapping of elements to threads is `repeat(rounds) * spatial(threads) * repeat(width)`.
pub(in crate::gpu) fn bind_copy(
    schedule: &mut Schedule,
    copy: BlockRv,
    around: usize,
    threads: &[(ThreadAxis, i64)],
) -> Result<(), ScheduleError> {
    let own = schedule.get_loops(copy)?.split_off(around);
    let found = block_of(schedule, copy)?;
    let (own, is_transposed) = in_order_of_source(schedule, copy, own)?;
    let Some(innermost) = own.last() else { return Ok(()) };
    let wanted = VECTOR_FETCH.get(&found.annotations).unwrap_or(1).max(1);
    let fits = !is_transposed && found.guards.is_empty() && extent(schedule, *innermost)? % wanted == 0;
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
    let of_axes = if counts.len() > 1 { schedule.split(*workers, &counts)? } else { vec![*workers] };
    for (part, (axis, _)) in of_axes.iter().zip(threads) {
        schedule.bind(*part, *axis)?;
    }
    unroll_rounds(schedule, *rounds)?;
    if width > 1 {
        schedule.vectorize(*vector)?;
    }
    Ok(())
}

/// Writes out the rounds of a copy, or some of them at a time where there are many.
fn unroll_rounds(schedule: &mut Schedule, rounds: LoopRv) -> Result<(), ScheduleError> {
    let count = extent(schedule, rounds)?;
    if count <= MAX_ROUNDS {
        return unroll_one(schedule, rounds).map(drop);
    }
    match (2..=ROUNDS_TOGETHER).rev().find(|together| count % together == 0) {
        Some(together) => {
            let parts = schedule.split(rounds, &[None, Some(together)])?;
            schedule.unroll(parts[1])
        }
        None => Ok(()),
    }
}

/// Brings the loops of a copy that transposes what it copies into an order in which a warp takes whole sectors: some elements beside each other
/// in device memory, of as many rows as the copy has beside each other. The answer is the loops, and whether that was done.
fn in_order_of_source(
    schedule: &mut Schedule,
    copy: BlockRv,
    own: Vec<LoopRv>,
) -> Result<(Vec<LoopRv>, bool), ScheduleError> {
    let found = block_of(schedule, copy)?;
    let Some((last, others)) = own.split_last() else { return Ok((own, false)) };
    let (Some((source, bytes)), Some(store)) = (source(schedule, &found), single_store(&found)) else {
        return Ok((own, false));
    };
    let strides: Vec<i64> = constants(&schedule.program().distances(source));
    let indices = bound_accesses(&found, source, AccessKind::Read);
    let Some(indices) = indices.first() else { return Ok((own, false)) };
    let is_along = |var: VarId| stride_of(indices, &strides, var) == Some(1);
    let mut along = None;
    for (place, target) in others.iter().enumerate() {
        if is_along(variable(schedule, *target)?) {
            along = Some((place, *target));
        }
    }
    let Some((place, along)) = along.filter(|_| variable(schedule, *last).is_ok_and(|var| !is_along(var)))
    else {
        return Ok((own, false));
    };
    let in_sector = power_in(extent(schedule, along)?, SECTOR / bytes);
    let rows = power_in(extent(schedule, *last)?, WARP / in_sector);
    let along = schedule.split(along, &[None, Some(in_sector)])?;
    let last = schedule.split(*last, &[None, Some(rows)])?;
    let mut order = others.to_vec();
    order.remove(place);
    order.extend([along[0], last[0], last[1], along[1]]);
    schedule.reorder(&order)?;
    // Elements of a sector then lie in rows four banks apart, and rows beside each other in these four banks.
    let rank = store.indices.len() as i64;
    let program = schedule.program();
    let is_plain =
        program.alignments(store.buffer).next().is_none() && program.swizzle(store.buffer).is_none();
    if rank >= 2 && bytes == BANK && is_plain {
        schedule.storage_align(copy, 0, rank - 2, BANKS, BANKS * bytes / SECTOR)?;
    }
    Ok((order, true))
}

/// The only tensor in device memory that a copy reads, and the bytes of its elements.
fn source(schedule: &Schedule, copy: &Block) -> Option<(BufferId, i64)> {
    let program = schedule.program();
    let mut global = reads(copy).into_iter().filter(|read| program.buffer(*read).scope == Scope::Global);
    let only = global.next().filter(|_| global.next().is_none())?;
    Some((only, program.buffer(only).dtype.bytes() as i64))
}

/// Distances as numbers; those that are not known are large.
fn constants(distances: &[Index]) -> Vec<i64> {
    distances.iter().map(|distance| distance.as_constant().unwrap_or(1 << 20)).collect()
}

/// The largest power of two, up to `most`, that divides a number.
fn power_in(number: i64, most: i64) -> i64 {
    let mut power = 1;
    while power < most && number % (2 * power) == 0 {
        power *= 2;
    }
    power
}

//! Binds the loops of blocks that tensor cores compute.

use tilewright_core::analysis::block::{reads, single_store, writes};
use tilewright_core::annotation::{TENSORIZE, TILED_LOOPS, VECTOR_FETCH};
use tilewright_core::program::Scope;
use tilewright_core::schedule::{BlockRv, LoopRv, Schedule, ScheduleError};
use tilewright_core::stmt::Symbol;
use tilewright_core::thread_axis::ThreadAxis;

use super::writers::loop_along;
use super::{extent, fused, nest_names, unroll_one, variable};
use crate::space::rules::block::block_of;

/// The threads of a warp.
const WARP: i64 = 32;

/// The most rounds of a copy that are written out one after the other, so that their loads overlap.
const MAX_ROUNDS: i64 = 16;

/// Binds the tiles of each block that is to be tensorized: those of blocks to the grid and those of warps to threads, together with the
/// loops of copies and of the block that writes the results. Then marks the innermost tiles as the intrinsic.
pub(super) fn bind_warps(schedule: &mut Schedule) -> Result<(), ScheduleError> {
    let found = tilewright_core::analysis::scope::blocks(&schedule.program().body);
    let marked = found.into_iter().filter_map(|block| {
        Some((block.name.clone(), TENSORIZE.get(&block.annotations)?, TILED_LOOPS.get(&block.annotations)?))
    });
    let marked: Vec<(Symbol, Symbol, Vec<i64>)> = marked.collect();
    for (name, intrinsic, counts) in marked {
        let block = schedule.get_block(&name)?;
        let [spatial, reduce] = counts[..] else { continue };
        bind(schedule, block, &intrinsic, [spatial, reduce].map(|count| count.max(0) as usize))?;
    }
    Ok(())
}

fn bind(
    schedule: &mut Schedule,
    block: BlockRv,
    intrinsic: &Symbol,
    [spatial, reduce]: [usize; 2],
) -> Result<(), ScheduleError> {
    let loops = schedule.get_loops(block)?;
    if loops.len() != spatial + reduce + 11 {
        return Err(ScheduleError::BadDecision("as many loops as a tile of products has"));
    }
    let found = block_of(schedule, block)?;
    let (blocks, inside) = loops.split_at(spatial + 2);
    let [rows, columns, ..] = inside[reduce + 1..] else { return Err(ScheduleError::BadLoopList) };
    let innermost = &inside[reduce + 6..];
    let warps = [extent(schedule, rows)?, extent(schedule, columns)?];
    let store = single_store(&found).ok_or(ScheduleError::NotReduction(found.id))?.clone();
    // The dimensions of the result that rows and columns run along.
    let along = |target: LoopRv| -> Result<usize, ScheduleError> {
        let var = variable(schedule, target)?;
        let iter = found.iters.iter().find(|iter| iter.binding.mentions(var));
        iter.and_then(|iter| store.indices.iter().position(|index| index.as_var() == Some(iter.var)))
            .ok_or(ScheduleError::NotInvertible(found.id))
    };
    let dimensions = [along(innermost[0])?, along(innermost[1])?];
    let grid = fused(schedule, blocks)?.ok_or(ScheduleError::BadLoopList)?;
    schedule.bind(grid, ThreadAxis::BlockX)?;
    for name in nest_names(schedule.program(), found.id).into_iter().filter(|name| *name != found.name) {
        let other = schedule.get_block(&name)?;
        let own = block_of(schedule, other)?;
        let copies_to =
            |scope| writes(&own).iter().all(|buffer| schedule.program().buffer(*buffer).scope == scope);
        if reads(&own).contains(&store.buffer) {
            bind_writer(schedule, other, store.buffer, dimensions, warps)?;
        } else if copies_to(Scope::Shared) {
            bind_copy(schedule, other, reduce + 2, warps)?;
        }
    }
    bind_pair(schedule, rows, columns)?;
    schedule.decompose_reduction(block, inside[0])?;
    schedule.tensorize(innermost[0], intrinsic)
}

fn bind_pair(schedule: &mut Schedule, rows: LoopRv, columns: LoopRv) -> Result<(), ScheduleError> {
    schedule.bind(rows, ThreadAxis::ThreadZ)?;
    schedule.bind(columns, ThreadAxis::ThreadY)
}

/// Divides the results among warps as the sums are.
fn bind_writer(
    schedule: &mut Schedule,
    writer: BlockRv,
    sums: tilewright_core::ids::BufferId,
    dimensions: [usize; 2],
    warps: [i64; 2],
) -> Result<(), ScheduleError> {
    let own = schedule.get_loops(writer)?.split_off(1);
    let found = block_of(schedule, writer)?;
    let refusal = ScheduleError::NotInvertible(found.id);
    let mut targets = Vec::new();
    for dimension in dimensions {
        targets.push(loop_along(schedule, &found, &own, sums, dimension)?.ok_or(refusal)?);
    }
    let rows = schedule.split(targets[0], &[Some(warps[0]), None])?;
    let columns = schedule.split(targets[1], &[Some(warps[1]), None])?;
    schedule.reorder(&[rows[0], columns[0], rows[1], columns[1]])?;
    bind_pair(schedule, rows[0], columns[0])
}

/// Has all threads of a block copy a tile.
fn bind_copy(
    schedule: &mut Schedule,
    copy: BlockRv,
    around: usize,
    warps: [i64; 2],
) -> Result<(), ScheduleError> {
    let own = schedule.get_loops(copy)?.split_off(around);
    let Some(innermost) = own.last() else { return Ok(()) };
    let found = block_of(schedule, copy)?;
    let wanted = VECTOR_FETCH.get(&found.annotations).unwrap_or(1).max(1);
    let fits = found.guards.is_empty() && extent(schedule, *innermost)? % wanted == 0;
    let width = if fits { wanted } else { 1 };
    let Some(elements) = fused(schedule, &own)? else { return Ok(()) };
    let vectors = schedule.split(elements, &[None, Some(width)])?;
    let parts = schedule.split(vectors[0], &[None, Some(warps[0]), Some(warps[1]), Some(WARP)])?;
    schedule.reorder(&[parts[1], parts[2], parts[3], parts[0]])?;
    bind_pair(schedule, parts[1], parts[2])?;
    schedule.bind(parts[3], ThreadAxis::ThreadX)?;
    if extent(schedule, parts[0])? <= MAX_ROUNDS {
        unroll_one(schedule, parts[0])?;
    }
    if width > 1 {
        schedule.vectorize(vectors[1])?;
    }
    Ok(())
}

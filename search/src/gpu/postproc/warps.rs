//! Binds the loops of blocks that tensor cores compute.

use tilewright_core::analysis::block::{reads, single_store, writes};
use tilewright_core::annotation::{TENSORIZE, TILED_LOOPS};
use tilewright_core::program::Scope;
use tilewright_core::schedule::{BlockRv, LoopRv, Schedule, ScheduleError};
use tilewright_core::stmt::Symbol;
use tilewright_core::thread_axis::{ThreadAxis, WARP};

use super::copies::bind_copy;
use super::writers::loop_along;
use super::{extent, fused, nest_names, variable};
use crate::space::rules::block::block_of;

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
            let axes = [ThreadAxis::ThreadZ, ThreadAxis::ThreadY, ThreadAxis::ThreadX];
            let counts = [warps[0], warps[1], WARP];
            let threads: Vec<(ThreadAxis, i64)> = axes.into_iter().zip(counts).collect();
            bind_copy(schedule, other, reduce + 2, &threads)?;
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

//! Binds the loops of blocks that tensor cores compute.

use tilewright_core::analysis::block::{reads, single_store, writes};
use tilewright_core::annotation::{TENSORIZE, TILED_LOOPS};
use tilewright_core::program::Scope;
use tilewright_core::schedule::{BlockRv, LoopRv, Schedule, ScheduleError};
use tilewright_core::stmt::Symbol;
use tilewright_core::task_mapping::TaskMapping;
use tilewright_core::thread_axis::{ThreadAxis, WARP};

use super::copies::bind_copy;
use super::mapping::{divide, refused};
use super::tiles::bind_grid;
use super::writers::loop_along;
use super::{extent, nest_names, variable};
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
    let products = &inside[reduce + 4..];
    let of_warp = [
        extent(schedule, products[0])? * extent(schedule, innermost[0])?,
        extent(schedule, products[1])? * extent(schedule, innermost[1])?,
    ];
    let store = single_store(&found).ok_or(ScheduleError::NotReduction(found.id))?.clone();
    // The dimensions of the result that rows and columns run along.
    let along = |target: LoopRv| -> Result<usize, ScheduleError> {
        let var = variable(schedule, target)?;
        let iter = found.iters.iter().find(|iter| iter.binding.mentions(var));
        iter.and_then(|iter| store.indices.iter().position(|index| index.as_var() == Some(iter.var)))
            .ok_or(ScheduleError::NotInvertible(found.id))
    };
    let dimensions = [along(innermost[0])?, along(innermost[1])?];
    let grid = bind_grid(schedule, blocks)?;
    for name in nest_names(schedule.program(), found.id).into_iter().filter(|name| *name != found.name) {
        let other = schedule.get_block(&name)?;
        let own = block_of(schedule, other)?;
        let copies_to =
            |scope| writes(&own).iter().all(|buffer| schedule.program().buffer(*buffer).scope == scope);
        if reads(&own).contains(&store.buffer) {
            let tile = WarpTile { dimensions, warps, of_warp };
            bind_writer(schedule, other, grid, store.buffer, tile)?;
        } else if copies_to(Scope::Shared) {
            let axes = [ThreadAxis::ThreadZ, ThreadAxis::ThreadY, ThreadAxis::ThreadX];
            let counts = [warps[0], warps[1], WARP];
            let threads: Vec<(ThreadAxis, i64)> = axes.into_iter().zip(counts).collect();
            bind_copy(schedule, other, grid + reduce + 1, &threads)?;
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

/// How a tile of results is divided among warps, along rows and along columns.
#[derive(Clone, Copy)]
struct WarpTile {
    /// The dimension of the sums.
    dimensions: [usize; 2],
    warps: [i64; 2],
    /// The results of a warp.
    of_warp: [i64; 2],
}

/// Divides the results among warps as the sums are, inside of `around` loops. The last warps have fewer results where the tile is cut at an end.
fn bind_writer(
    schedule: &mut Schedule,
    writer: BlockRv,
    around: usize,
    sums: tilewright_core::ids::BufferId,
    tile: WarpTile,
) -> Result<(), ScheduleError> {
    let own = schedule.get_loops(writer)?.split_off(around);
    let found = block_of(schedule, writer)?;
    let refusal = ScheduleError::NotInvertible(found.id);
    let mut targets = Vec::new();
    for dimension in tile.dimensions {
        targets.push(loop_along(schedule, &found, &own, sums, dimension)?.ok_or(refusal)?);
    }
    // Each warp has a tile of its own.
    let mapping = TaskMapping::spatial(&tile.warps)
        .and_then(|warps| warps.compose(&TaskMapping::repeat(&tile.of_warp)?))
        .map_err(refused)?;
    let mapped = divide(schedule, &targets, &mapping)?;
    let [rows, columns] = mapped.workers[..] else { return Err(ScheduleError::BadLoopList) };
    bind_pair(schedule, rows, columns)
}

//! Binds the loops of blocks that read the sums of a tiled block.

use tilewright_core::analysis::block::{loads, single_store};
use tilewright_core::ids::BufferId;
use tilewright_core::schedule::{BlockRv, LoopRv, Schedule, ScheduleError};
use tilewright_core::stmt::Block;
use tilewright_core::thread_axis::ThreadAxis;
use tilewright_core::visit::find_loop;

use super::tiles::TiledLoop;
use super::{extent, fused, unroll_one};
use crate::space::rules::block::block_of;

/// The parts of one loop of the block: virtual threads, threads, and two levels of elements of a thread.
type Parts = Vec<LoopRv>;

/// Splits the loops of a block inside the grid as those of the block that computes `sums`, so that each thread reads the sums that it
/// has computed. Elements beside each other are written at once. `around` loops are shared with that block.
pub(super) fn bind_writer(
    schedule: &mut Schedule,
    writer: BlockRv,
    around: usize,
    sums: BufferId,
    tile: &[TiledLoop],
) -> Result<(), ScheduleError> {
    let own = schedule.get_loops(writer)?.split_off(around);
    let found = block_of(schedule, writer)?;
    let mut targets = Vec::new();
    for tiled in tile {
        let target = match tiled.dimension {
            Some(dimension) => loop_along(schedule, &found, &own, sums, dimension)?,
            None => None,
        };
        match target {
            Some(target) => targets.push((target, tiled)),
            // The block has no loop where the tile has one element.
            None if tiled.parts[1] == 1 => {}
            None => return Err(ScheduleError::NotInvertible(found.id)),
        }
    }
    if targets.len() != own.len() {
        return Err(ScheduleError::NotInvertible(found.id));
    }
    let mut parts: Vec<Parts> = Vec::new();
    for (target, tiled) in targets {
        parts.push(schedule.split(target, &tiled.parts.map(Some))?);
    }
    let level = |number: usize| -> Vec<LoopRv> { parts.iter().map(|own| own[number]).collect() };
    let order = [level(1), level(0), level(2), level(3)].concat();
    if order.is_empty() {
        return Ok(());
    }
    schedule.reorder(&order)?;
    if let Some(threads) = fused(schedule, &level(1))? {
        schedule.bind(threads, ThreadAxis::ThreadX)?;
    }
    let lanes = vector_loop(schedule, writer, order[order.len() - 1])?;
    for target in [level(0), level(2), level(3)].concat() {
        match lanes {
            Some(lanes) if lanes == target => schedule.vectorize(target)?,
            _ => drop(unroll_one(schedule, target)?),
        }
    }
    Ok(())
}

/// The loop that runs along a dimension of a buffer that the block reads.
pub(super) fn loop_along(
    schedule: &Schedule,
    block: &Block,
    own: &[LoopRv],
    buffer: BufferId,
    dimension: usize,
) -> Result<Option<LoopRv>, ScheduleError> {
    let accesses = loads(&block.body);
    let mut indices = accesses
        .iter()
        .filter(|access| access.buffer == buffer)
        .map(|access| access.indices[dimension].as_var());
    let refusal = ScheduleError::NotInvertible(block.id);
    let first = indices.next().flatten().ok_or(refusal)?;
    if indices.any(|other| other != Some(first)) {
        return Err(refusal);
    }
    let iter = block.iters.iter().find(|iter| iter.var == first).ok_or(refusal)?;
    for target in own {
        let id = schedule.values().target_loop(*target)?;
        let node = find_loop(&schedule.program().body, id).ok_or(ScheduleError::MissingLoop(id))?;
        if iter.binding.mentions(node.var) {
            return Ok(Some(*target));
        }
    }
    Ok(None)
}

/// The innermost loop, where its iterations write elements beside each other without a condition.
fn vector_loop(
    schedule: &Schedule,
    writer: BlockRv,
    innermost: LoopRv,
) -> Result<Option<LoopRv>, ScheduleError> {
    let block = block_of(schedule, writer)?;
    let id = schedule.values().target_loop(innermost)?;
    let node = find_loop(&schedule.program().body, id).ok_or(ScheduleError::MissingLoop(id))?;
    let along = single_store(&block).and_then(|store| store.indices.last()?.as_var());
    let is_along = block.iters.iter().any(|iter| Some(iter.var) == along && iter.binding.mentions(node.var));
    let is_guarded = block.guards.iter().any(|guard| guard.index.mentions(node.var));
    let suits = is_along && !is_guarded && extent(schedule, innermost)? > 1;
    Ok(suits.then_some(innermost))
}

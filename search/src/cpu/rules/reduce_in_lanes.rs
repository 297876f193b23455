//! Vectorized reductions, for operands that are contiguous along the reduction.

use tilewright_core::analysis::block::{loads, reduction};
use tilewright_core::annotation::TILING;
use tilewright_core::ids::VarId;
use tilewright_core::index::Index;
use tilewright_core::schedule::{BlockRv, LoopRv, Schedule, ScheduleError};
use tilewright_core::stmt::{Block, IterKind};
use tilewright_macros::schedule_rule;

use crate::cpu::rules::multi_level_tiling::Tiles;
use crate::space::rule::{RuleExtension, RuleOutcome, RuleResult};
use crate::space::rules::add_rfactor::partition_loops;
use crate::space::rules::block::{block_of, needs_multi_level_tiling};

/// Most vector registers for the partial sums of one result.
const MAX_REGISTERS: i64 = 4;

/// Distributes a reduction with data reuse over vector lanes, when its operands are contiguous along it: each lane sums up
/// its own part, and the parts are added when a tile is finished. The partial sums are tiled like any other block with
/// data reuse. The plain reduction stays as the other variant; it has no loop to vectorize unless an operand is packed.
#[schedule_rule(target = "cpu", after = "add_rfactor", before = "multi_level_tiling")]
pub fn reduce_in_lanes(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    let found = block_of(schedule, block)?;
    if TILING.is_in(&found.annotations) || !needs_multi_level_tiling(schedule.program(), &found) {
        return schedule.unchanged();
    }
    let Some(along) = reduction_along_memory(&found) else { return schedule.unchanged() };
    let plain = schedule.fork();
    distribute_over_lanes(schedule, block, along)?;
    Ok(RuleOutcome::Variants(vec![plain, schedule.clone()]))
}

/// The reduction iterator that is the last index of each operand that depends on it, with its extent. `None` when an operand is also
/// contiguous along the last dimension of the output.
fn reduction_along_memory(block: &Block) -> Option<(VarId, i64)> {
    let store = reduction(block)?.store;
    let output = store.indices.last().and_then(Index::as_var);
    let operands: Vec<_> =
        loads(&block.body).into_iter().filter(|access| access.buffer != store.buffer).collect();
    let is_last = |indices: &[Index], var: VarId| {
        indices.split_last().is_some_and(|(last, rest)| {
            last.as_var() == Some(var) && !rest.iter().any(|index| index.mentions(var))
        })
    };
    let mentions = |indices: &[Index], var: VarId| indices.iter().any(|index| index.mentions(var));
    if output.is_some_and(|var| operands.iter().any(|access| is_last(access.indices, var))) {
        return None;
    }
    block.iters.iter().find_map(|iter| {
        let runs_along = iter.kind == IterKind::Reduce
            && operands
                .iter()
                .all(|access| is_last(access.indices, iter.var) || !mentions(access.indices, iter.var))
            && operands.iter().any(|access| mentions(access.indices, iter.var));
        runs_along.then_some((iter.var, iter.extent.as_constant()?))
    })
}

/// Splits a vector off the reduction loop, factors it out of the reduction, and tiles the partial sums.
fn distribute_over_lanes(
    schedule: &mut Schedule,
    block: BlockRv,
    (along, extent): (VarId, i64),
) -> Result<(), ScheduleError> {
    let found = block_of(schedule, block)?;
    let refusal = ScheduleError::NotReduction(found.id);
    let target = loop_of(schedule, block, along)?.ok_or(refusal)?;
    let width = i64::from(schedule.cpu()?.lanes(4));
    let mut widths: Vec<i64> = std::iter::successors(Some(width), |width| Some(width * 2))
        .take_while(|lanes| *lanes <= width * MAX_REGISTERS && *lanes < extent)
        .collect();
    // Where no width divides, the last vectors have values that change nothing in lanes beyond the end.
    if widths.iter().any(|lanes| extent % lanes == 0) {
        widths.retain(|lanes| extent % lanes == 0);
    }
    if widths.is_empty() {
        return Err(ScheduleError::BadFactors(schedule.values().target_loop(target)?));
    }
    let weights = vec![1.0 / widths.len() as f64; widths.len()];
    let lanes = schedule.sample_categorical(&widths, &weights)?;
    let parts = schedule.split(target, &[None, Some(lanes)])?;
    let (partial, total) = schedule.rfactor(block, parts[1], -1)?;
    let tiles = Tiles::cut(schedule, partial, &[parts[1]])?;
    schedule.reverse_compute_at(total, tiles.spatial(1).ok_or(refusal)?)
}

/// The loop that an iterator of a block is bound to.
fn loop_of(schedule: &mut Schedule, block: BlockRv, iter: VarId) -> Result<Option<LoopRv>, ScheduleError> {
    let found = block_of(schedule, block)?;
    let loops = schedule.get_loops(block)?;
    let (_, reduce) = partition_loops(schedule, block, &loops)?;
    let binding = found.iters.iter().find(|other| other.var == iter).and_then(|iter| iter.binding.as_var());
    for target in reduce {
        let id = schedule.values().target_loop(target)?;
        let node = tilewright_core::visit::find_loop(&schedule.program().body, id);
        if node.is_some_and(|node| Some(node.var) == binding) {
            return Ok(Some(target));
        }
    }
    Ok(None)
}

//! Vectorized reductions, for operands that are contiguous along the reduction.

use tilewright_core::analysis::block::{BufferAccess, loads, reads, reduction};
use tilewright_core::annotation::TILING;
use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::index::Index;
use tilewright_core::program::{Program, Scope};
use tilewright_core::schedule::{BlockRv, Schedule, ScheduleError};
use tilewright_core::stmt::{Block, IterKind, Store};
use tilewright_macros::schedule_rule;

use crate::cpu::rules::multi_level_tiling::Tiles;
use crate::cpu::rules::packing::order_along;
use crate::space::rule::{RuleExtension, RuleOutcome, RuleResult};
use crate::space::rules::block::{block_of, loop_of, needs_multi_level_tiling};

/// Most vector registers for the partial sums of one result.
const MAX_REGISTERS: i64 = 4;

/// The fewest uses of an element for which copying it with another layout pays.
const LEAST_USES: i64 = 16;

/// Distributes a reduction with data reuse over vector lanes, when its operands are contiguous along it: each lane sums up
/// its own part, and the parts are added when a tile is finished. The partial sums are tiled like any other block with
/// data reuse. The plain reduction stays as the other variant; it has no loop to vectorize unless an operand is packed.
///
/// A convolution to a few channels fills no vector with its output. There, operands that are not contiguous along the reduction are
/// copied so that they are.
#[schedule_rule(target = "cpu", after = "add_rfactor", before = "multi_level_tiling")]
pub fn reduce_in_lanes(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    let found = block_of(schedule, block)?;
    if TILING.is_in(&found.annotations) || !needs_multi_level_tiling(schedule.program(), &found) {
        return schedule.unchanged();
    }
    let width = i64::from(schedule.cpu()?.lanes(4));
    let along =
        reduction_along_memory(&found).or_else(|| reduction_to_few(schedule.program(), &found, width));
    let Some(along) = along else { return schedule.unchanged() };
    let plain = schedule.fork();
    for buffer in &along.turned {
        turn(schedule, block, *buffer, along.iter)?;
    }
    distribute_over_lanes(schedule, block, &along)?;
    Ok(RuleOutcome::Variants(vec![plain, schedule.clone()]))
}

/// A reduction iterator along which operands are contiguous.
struct Along {
    iter: VarId,
    extent: i64,
    /// The operands that are contiguous along it in another layout.
    turned: Vec<BufferId>,
}

/// Whether an iterator is the last index of an access, and no other one.
fn is_last(indices: &[Index], var: VarId) -> bool {
    indices.split_last().is_some_and(|(last, rest)| {
        last.as_var() == Some(var) && !rest.iter().any(|index| index.mentions(var))
    })
}

fn mentions(indices: &[Index], var: VarId) -> bool {
    indices.iter().any(|index| index.mentions(var))
}

/// The accesses of a reduction's operands.
fn operands<'a>(block: &'a Block, store: &Store) -> Vec<BufferAccess<'a>> {
    loads(&block.body).into_iter().filter(|access| access.buffer != store.buffer).collect()
}

/// The reduction iterator that is the last index of each operand that depends on it. `None` when an operand is also
/// contiguous along the last dimension of the output.
fn reduction_along_memory(block: &Block) -> Option<Along> {
    let store = reduction(block)?.store;
    let output = store.indices.last().and_then(Index::as_var);
    let operands = operands(block, store);
    if output.is_some_and(|var| operands.iter().any(|access| is_last(access.indices, var))) {
        return None;
    }
    block.iters.iter().find_map(|iter| {
        let runs_along = iter.kind == IterKind::Reduce
            && operands
                .iter()
                .all(|access| is_last(access.indices, iter.var) || !mentions(access.indices, iter.var))
            && operands.iter().any(|access| mentions(access.indices, iter.var));
        runs_along.then_some(Along { iter: iter.var, extent: iter.extent.as_constant()?, turned: Vec::new() })
    })
}

/// As [`reduction_along_memory`], where the last dimension of the output fills no vector: of the operands, some have to be turned, whose
/// elements are used often.
fn reduction_to_few(program: &Program, block: &Block, lanes: i64) -> Option<Along> {
    let store = reduction(block)?.store;
    let output = store.indices.last().and_then(Index::as_var)?;
    let extent_of = |var: VarId| block.iters.iter().find(|iter| iter.var == var)?.extent.as_constant();
    if extent_of(output)? * 2 > lanes {
        return None;
    }
    let operands = operands(block, store);
    let points: i64 = block
        .iters
        .iter()
        .map(|iter| iter.extent.as_constant())
        .try_fold(1i64, |points, extent| points.checked_mul(extent?))?;
    block.iters.iter().find_map(|iter| {
        let extent = iter.extent.as_constant().filter(|extent| *extent >= lanes)?;
        if iter.kind != IterKind::Reduce || !operands.iter().any(|access| is_last(access.indices, iter.var)) {
            return None;
        }
        let mut turned = Vec::new();
        for access in &operands {
            if is_last(access.indices, iter.var) || !mentions(access.indices, iter.var) {
                continue;
            }
            order_along(access.indices, iter.var)?;
            let is_read_once = operands.iter().filter(|other| other.buffer == access.buffer).count() == 1;
            let elements = elements(program, access.buffer)?;
            if !is_read_once || elements.checked_mul(LEAST_USES)? > points {
                return None;
            }
            turned.push(access.buffer);
        }
        Some(Along { iter: iter.var, extent, turned })
    })
}

/// The number of elements of a buffer; `None` when it is symbolic.
fn elements(program: &Program, buffer: BufferId) -> Option<i64> {
    let shape = program.buffer(buffer).shape.iter();
    shape.map(Index::as_constant).try_fold(1i64, |size, extent| size.checked_mul(extent?))
}

/// Copies an operand so that it is contiguous along an iterator.
fn turn(
    schedule: &mut Schedule,
    block: BlockRv,
    buffer: BufferId,
    along: VarId,
) -> Result<(), ScheduleError> {
    let found = block_of(schedule, block)?;
    let refusal = ScheduleError::NotReduction(found.id);
    let number = reads(&found).iter().position(|other| *other == buffer).ok_or(refusal)?;
    let loads = loads(&found.body);
    let access = loads.iter().find(|access| access.buffer == buffer).ok_or(refusal)?;
    let order = order_along(access.indices, along).flatten().ok_or(refusal)?;
    let copy = schedule.cache_read(block, number as i64, Scope::Global)?;
    schedule.transform_layout(copy, "write", 0, order)
}

/// Splits a vector off the reduction loop, factors it out of the reduction, and tiles the partial sums.
fn distribute_over_lanes(
    schedule: &mut Schedule,
    block: BlockRv,
    &Along { iter, extent, .. }: &Along,
) -> Result<(), ScheduleError> {
    let found = block_of(schedule, block)?;
    let refusal = ScheduleError::NotReduction(found.id);
    let position = found.iters.iter().position(|other| other.var == iter).ok_or(refusal)?;
    let target = loop_of(schedule, block, position)?.ok_or(refusal)?;
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

//! Lays constant operands out in the order in which tiles read them.
//!
//! The copy depends on constant parameters alone, so that it is made before the call and kept: see
//! [`constant_stages`](tilewright_core::analysis::constant::constant_stages).

use std::sync::Arc;

use tilewright_core::analysis::block::{BufferAccess, loads, reads, reduction};
use tilewright_core::analysis::scope::loops_around;
use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::index::Index;
use tilewright_core::index::map::IndexMap;
use tilewright_core::program::{Program, Scope};
use tilewright_core::schedule::{BlockRv, Schedule, ScheduleError};
use tilewright_core::stmt::{Block, For};
use tilewright_core::visit::find_block;

use crate::postproc::{block_names, find, setting};
use crate::rules::constant_operands;
use crate::rules::multi_level_tiling::CONSTANT_LAYOUT;
use crate::rules::parallelize_vectorize_unroll::note_constant_nest;

/// Lets each block that has the annotation read copies of its constant operands that lie in the order of its loops.
pub(super) fn lay_out_constants(schedule: &mut Schedule) -> Result<(), ScheduleError> {
    for name in block_names(schedule) {
        let (block, id) = find(schedule, &name)?;
        let Some(found) = find_block(&schedule.program().body, id).cloned() else { continue };
        if setting(&found, CONSTANT_LAYOUT) != Some(1) {
            continue;
        }
        for (buffer, map) in layouts(schedule.program(), &found) {
            lay_out(schedule, block, buffer, &map)?;
        }
    }
    Ok(())
}

/// Lets a block read a copy of a buffer in another layout. The copy is made in the order of the new layout where that is
/// possible.
fn lay_out(
    schedule: &mut Schedule,
    block: BlockRv,
    buffer: BufferId,
    map: &IndexMap,
) -> Result<(), ScheduleError> {
    let id = schedule.values().block(block)?;
    let found = find_block(&schedule.program().body, id).ok_or(ScheduleError::MissingBlock(id))?;
    let refusal = ScheduleError::NotReduction(id);
    let number = reads(found).iter().position(|read| *read == buffer).ok_or(refusal)?;
    let copy = schedule.cache_read(block, number as i64, Scope::Global)?;
    schedule.transform_layout(copy, "write", 0, map.clone())?;
    // A layout with room to spare has no order of loops of its own.
    schedule.transform_block_layout(copy, map.clone()).ok();
    note_constant_nest(schedule, copy)
}

/// The constant operands of a block that are read in another order than they lie in, with the layouts in which they
/// would lie in that order.
fn layouts(program: &Program, block: &Block) -> Vec<(BufferId, IndexMap)> {
    let path = loops_around(&program.body, block.id).unwrap_or_default();
    let operands = constant_operands(program, block);
    let accesses: Vec<BufferAccess<'_>> = loads(&block.body);
    operands
        .into_iter()
        .filter_map(|buffer| {
            let mut own = accesses.iter().filter(|access| access.buffer == buffer);
            // Two accesses would have two orders.
            let access = own.next().filter(|_| own.next().is_none())?;
            Some((buffer, layout(program, block, &path, access)?))
        })
        .collect()
}

/// One loop's part in an index: `index / divisor % extent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Digit {
    /// Which index of the access.
    dimension: usize,
    divisor: i64,
    extent: i64,
    /// How far outside the loop is.
    depth: usize,
}

fn layout(
    program: &Program,
    block: &Block,
    path: &[&Arc<For>],
    access: &BufferAccess<'_>,
) -> Option<IndexMap> {
    let mut digits = Vec::new();
    let mut seen = Vec::new();
    for (dimension, index) in access.indices.iter().enumerate() {
        let var = index.as_var().filter(|var| !seen.contains(var))?;
        seen.push(var);
        let binding = &block.iters.iter().find(|iter| iter.var == var)?.binding;
        let size = program.buffer(access.buffer).shape[dimension].as_constant()?;
        digits.extend(digits_of(binding, path, dimension, size)?);
    }
    digits.sort_by_key(|digit| digit.depth);
    if let Some(lane) = vector_depth(block, path) {
        digits.sort_by_key(|digit| digit.depth == lane);
    }
    let merged = merge(digits);
    let sizes = &program.buffer(access.buffer).shape;
    let outputs = merged.iter().map(|digit| output(digit, &sizes[digit.dimension])).collect();
    let is_in_order = merged.len() == sizes.len()
        && merged.iter().enumerate().all(|(place, digit)| digit.dimension == place);
    if is_in_order { None } else { IndexMap::new(sizes.len() as u32, outputs) }
}

/// The loops that make up an index, as digits: each steps over all that the faster ones reach, and together they reach
/// every value below `size` once.
fn digits_of(binding: &Index, path: &[&Arc<For>], dimension: usize, size: i64) -> Option<Vec<Digit>> {
    let mut digits = Vec::new();
    for (depth, node) in path.iter().enumerate() {
        if !binding.mentions(node.var) {
            continue;
        }
        let (divisor, extent) = (binding.linear_coefficient(node.var)?, node.extent.as_constant()?);
        digits.push(Digit { dimension, divisor, extent, depth });
    }
    digits.sort_by_key(|digit| (digit.divisor, digit.extent));
    let mut reach = 1i64;
    for digit in &digits {
        if digit.divisor != reach && digit.extent != 1 {
            return None;
        }
        reach = reach.checked_mul(digit.extent)?;
    }
    digits.retain(|digit| digit.extent != 1);
    (reach == size && binding.constant_part() == 0).then_some(digits)
}

/// The depth of the innermost loop along the last dimension of the block's output, which can run in lanes.
fn vector_depth(block: &Block, path: &[&Arc<For>]) -> Option<usize> {
    let var: VarId = reduction(block)?.store.indices.last()?.as_var()?;
    let binding = &block.iters.iter().find(|iter| iter.var == var)?.binding;
    path.iter().rposition(|node| binding.mentions(node.var) && !node.extent.is(1))
}

/// Neighbours that continue each other are one digit.
fn merge(digits: Vec<Digit>) -> Vec<Digit> {
    let mut merged: Vec<Digit> = Vec::new();
    for digit in digits {
        match merged.last_mut() {
            Some(outer)
                if outer.dimension == digit.dimension && outer.divisor == digit.divisor * digit.extent =>
            {
                (outer.divisor, outer.extent) = (digit.divisor, outer.extent * digit.extent);
            }
            _ => merged.push(digit),
        }
    }
    merged
}

fn output(digit: &Digit, size: &Index) -> Index {
    let quotient = Index::var(VarId(digit.dimension as u32)).floor_div(digit.divisor);
    let is_slowest = size.is(digit.divisor * digit.extent);
    if is_slowest { quotient } else { quotient.modulo(digit.extent) }
}

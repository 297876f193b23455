//! Lays constant operands out in the order in which tiles read them.
//!
//! The copy depends on constant parameters alone, so that it is made once, before all calls: see
//! [`constant_stages`](tilewright_core::analysis::constant::constant_stages).

use tilewright_core::analysis::block::{BufferAccess, loads, reads};
use tilewright_core::analysis::scope::loops_around;
use tilewright_core::annotation::CONSTANT_LAYOUT;
use tilewright_core::ids::BufferId;
use tilewright_core::index::map::IndexMap;
use tilewright_core::program::{Program, Scope};
use tilewright_core::schedule::{BlockRv, Schedule, ScheduleError};
use tilewright_core::stmt::Block;
use tilewright_core::visit::find_block;

use crate::cpu::postproc::loop_order::LoopOrder;
use crate::cpu::postproc::{block_names, find};
use crate::cpu::rules::parallelize_vectorize_unroll::annotate_constant_nest;
use crate::space::rules::block::constant_operands;

/// Lets each block that has the annotation read copies of its constant operands that lie in the order of its loops.
pub(super) fn lay_out_constants(schedule: &mut Schedule) -> Result<(), ScheduleError> {
    for name in block_names(schedule) {
        let (block, id) = find(schedule, &name)?;
        let Some(found) = find_block(&schedule.program().body, id).cloned() else { continue };
        if CONSTANT_LAYOUT.get(&found.annotations) != Some(true) {
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
    // A padded layout has no loop order of its own.
    schedule.transform_block_layout(copy, map.clone()).ok();
    annotate_constant_nest(schedule, copy)
}

/// The constant operands of a block that are not read in memory order, each with the layout that stores it in the order of the reads.
fn layouts(program: &Program, block: &Block) -> Vec<(BufferId, IndexMap)> {
    let path = loops_around(&program.body, block.id).unwrap_or_default();
    let operands = constant_operands(program, block);
    let accesses: Vec<BufferAccess<'_>> = loads(&block.body);
    operands
        .into_iter()
        .filter_map(|buffer| {
            let mut own = accesses.iter().filter(|access| access.buffer == buffer);
            // Two accesses would want two layouts.
            let access = own.next().filter(|_| own.next().is_none())?;
            let order = LoopOrder::of(program, block, &path, access, 0)?;
            Some((buffer, order.map(&program.buffer(buffer).shape)?))
        })
        .collect()
}

//! Whether iterations may run in any order, and which threads they may be bound to.

use std::sync::Arc;

use crate::analysis::block::{is_reduction, reduction, updates_atomically, writes};
use crate::analysis::scope::{blocks, is_private_to};
use crate::ids::LoopId;
use crate::program::Program;
use crate::schedule::ScheduleError;
use crate::schedule::find::require_loop;
use crate::stmt::{For, IterKind, LoopKind, Stmt};
use crate::visit::for_each_stmt;

/// Checks that a serial loop's iterations neither share a reduction nor follow each other in order nor write the same elements of a
/// buffer that lives outside the loop. One iteration shares nothing.
pub(in crate::schedule) fn check_independent(program: &Program, id: LoopId) -> Result<(), ScheduleError> {
    let target = require_loop(program, id)?;
    if target.kind != LoopKind::Serial {
        return Err(ScheduleError::NotSerial(id));
    }
    if target.extent.as_constant().is_some_and(|extent| extent <= 1) {
        return Ok(());
    }
    for block in blocks(&target.body) {
        let depends = |kind: IterKind| {
            block.iters.iter().any(|iter| iter.kind == kind && iter.binding.mentions(target.var))
        };
        if depends(IterKind::Reduce) && updates_atomically(block) {
            continue;
        }
        if depends(IterKind::Reduce) {
            return Err(ScheduleError::ReductionLoop { target: id, block: block.id });
        }
        if depends(IterKind::Ordered) {
            return Err(ScheduleError::OrderedLoop { target: id, block: block.id });
        }
        if !depends(IterKind::Spatial) {
            let shared = writes(block).into_iter().find(|buffer| !is_private_to(program, id, *buffer));
            if let Some(buffer) = shared {
                return Err(ScheduleError::SharedWrite { target: id, block: block.id, buffer });
            }
        }
    }
    Ok(())
}

/// Checks that the threads of a loop can combine their values ("cross-thread reduction"): it is serial, the loop of a reduction alone, around
/// its block and nothing else, and has as many iterations as lanes exchange values, a power of two.
pub(in crate::schedule) fn check_combined(program: &Program, id: LoopId) -> Result<(), ScheduleError> {
    let target = require_loop(program, id)?;
    if target.kind != LoopKind::Serial {
        return Err(ScheduleError::NotSerial(id));
    }
    let Stmt::Block(block) = &target.body else { return check_independent(program, id) };
    let reduces =
        block.iters.iter().any(|iter| iter.kind == IterKind::Reduce && iter.binding.mentions(target.var));
    if !reduces || updates_atomically(block) {
        return check_independent(program, id);
    }
    let refusal = ScheduleError::NotCombined { target: id, block: block.id };
    let is_power = target.extent.as_constant().is_some_and(|extent| extent > 0 && extent & (extent - 1) == 0);
    let chooses_elsewhere =
        block.iters.iter().any(|iter| iter.kind != IterKind::Reduce && iter.binding.mentions(target.var));
    let is_guarded =
        block.guards.iter().any(|guard| guard.index.mentions(target.var) || guard.bound.mentions(target.var));
    let is_plain = is_reduction(block) && matches!(block.body, Stmt::Store(_)) && reduction(block).is_some();
    if is_power && !chooses_elsewhere && !is_guarded && is_plain { Ok(()) } else { Err(refusal) }
}

/// Checks that nests can become one: no axis has two extents in them.
pub(in crate::schedule) fn check_axes_agree(nests: &[Arc<For>]) -> Result<(), ScheduleError> {
    let all: Vec<&Arc<For>> = nests.iter().flat_map(|nest| bound_loops(&nest.body)).collect();
    for (number, node) in all.iter().enumerate() {
        let LoopKind::Bound(axis) = node.kind else { continue };
        let other = all[..number].iter().find(|other| other.kind == node.kind && other.extent != node.extent);
        if let Some(other) = other
            && axis.is_of_grid()
        {
            return Err(ScheduleError::AxisExtent { target: node.id, other: other.id });
        }
    }
    Ok(())
}

/// The loops that are bound to axes, in program order.
pub(in crate::schedule) fn bound_loops(stmt: &Stmt) -> Vec<&Arc<For>> {
    let mut found = Vec::new();
    for_each_stmt(stmt, &mut |stmt| {
        if let Stmt::For(node) = stmt
            && matches!(node.kind, LoopKind::Bound(_))
        {
            found.push(node);
        }
    });
    found
}

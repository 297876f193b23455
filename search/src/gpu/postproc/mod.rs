//! The built-in postprocessors of a GPU: one file each.
//!
//! Rules decide tiles; postprocessors bind them to threads. Moving a block drops its loops of one iteration, so that the loops of copies
//! are known only when all decisions are made.

mod copies;
mod mapping;
mod pipelines;
mod tiles;
mod unbound;
pub(crate) mod verify;
mod warps;
mod writers;

pub(super) use copies::bind_copy;

use tilewright_core::analysis::scope::{blocks, loops_around};
use tilewright_core::ids::{BlockId, VarId};
use tilewright_core::program::Program;
use tilewright_core::schedule::{LoopRv, Schedule, ScheduleError};
use tilewright_core::stmt::Symbol;
use tilewright_core::visit::find_loop;

use crate::space::postproc::{Postprocessor, Postprocessors};

/// All postprocessors in order: tiles are bound before the blocks that no rule has bound, the limits come last.
pub(crate) fn all() -> Postprocessors {
    let all = [
        Postprocessor::built_in("bind_tiles", |schedule| Ok(tiles::bind_tiles(schedule)?)),
        Postprocessor::built_in("bind_warps", |schedule| Ok(warps::bind_warps(schedule)?)),
        Postprocessor::built_in("pipeline_copies", |schedule| Ok(pipelines::pipeline_copies(schedule)?)),
        Postprocessor::built_in("bind_unbound", |schedule| Ok(unbound::bind_unbound(schedule)?)),
        Postprocessor::built_in("verify_limits", |schedule| {
            verify::verify_limits(schedule.program(), schedule.context())
        }),
    ];
    Vec::from(all).into()
}

/// The names of the blocks in the nest of a block, which is among them.
fn nest_names(program: &Program, block: BlockId) -> Vec<Symbol> {
    let path = loops_around(&program.body, block).unwrap_or_default();
    let found = path.first().map(|outermost| blocks(&outermost.body)).unwrap_or_default();
    found.into_iter().map(|block| block.name.clone()).collect()
}

/// The iterations of a loop, which must be known.
pub(super) fn extent(schedule: &Schedule, target: LoopRv) -> Result<i64, ScheduleError> {
    let id = schedule.values().target_loop(target)?;
    let node = find_loop(&schedule.program().body, id).ok_or(ScheduleError::MissingLoop(id))?;
    node.extent.as_constant().ok_or(ScheduleError::SymbolicExtent(id))
}

/// The variable of a loop.
pub(super) fn variable(schedule: &Schedule, target: LoopRv) -> Result<VarId, ScheduleError> {
    let id = schedule.values().target_loop(target)?;
    find_loop(&schedule.program().body, id).map(|node| node.var).ok_or(ScheduleError::MissingLoop(id))
}

/// Unrolls a loop of several iterations; lowering drops the others. The answer is the number of iterations.
fn unroll_one(schedule: &mut Schedule, target: LoopRv) -> Result<i64, ScheduleError> {
    let iterations = extent(schedule, target)?;
    if iterations > 1 {
        schedule.unroll(target)?;
    }
    Ok(iterations)
}

/// One loop in place of some that follow each other; `None` for no loops.
fn fused(schedule: &mut Schedule, loops: &[LoopRv]) -> Result<Option<LoopRv>, ScheduleError> {
    match loops {
        [] => Ok(None),
        [single] => Ok(Some(*single)),
        _ => schedule.fuse(loops).map(Some),
    }
}

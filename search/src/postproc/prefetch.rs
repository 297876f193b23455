//! Lets blocks ask ahead for what they read, where the schedule says so.

use tilewright_core::analysis::scope::loops_around;
use tilewright_core::ids::BlockId;
use tilewright_core::lower::MAX_PREFETCH;
use tilewright_core::program::Program;
use tilewright_core::schedule::{Schedule, ScheduleError};
use tilewright_core::stmt::LoopKind;
use tilewright_core::visit::find_block;

use crate::postproc::{block_names, find, setting};
use crate::rules::prefetch_inputs::{AHEAD, NEAR, NEXT_RUN};

/// How many iterations ahead is near.
const NEAR_ITERATIONS: i64 = 4;

/// Prefetches in the innermost loop of each block that stays a loop.
pub(super) fn prefetch_inputs(schedule: &mut Schedule) -> Result<(), ScheduleError> {
    for name in block_names(schedule) {
        let (block, id) = find(schedule, &name)?;
        if let Some((position, distance)) = plan(schedule.program(), id) {
            let loops = schedule.get_loops(block)?;
            schedule.prefetch(loops[position], distance)?;
        }
    }
    Ok(())
}

/// Which of the loops around a block, and how many of its iterations ahead.
fn plan(program: &Program, id: BlockId) -> Option<(usize, i64)> {
    let ahead = setting(find_block(&program.body, id)?, AHEAD)?;
    let path = loops_around(&program.body, id)?;
    let position = path.iter().rposition(|node| {
        node.kind == LoopKind::Serial && node.extent.as_constant().is_none_or(|extent| extent > 1)
    })?;
    let distance = match ahead {
        NEAR => NEAR_ITERATIONS,
        NEXT_RUN => path[position].extent.as_constant()?,
        _ => return None,
    };
    (distance <= MAX_PREFETCH).then_some((position, distance))
}

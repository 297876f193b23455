//! Lets blocks ask ahead for what they read, where the schedule says so.

use tilewright_core::analysis::block::reads;
use tilewright_core::analysis::scope::loops_around;
use tilewright_core::annotation::{MAX_PREFETCH, PREFETCH_CHOICE};
use tilewright_core::ids::BlockId;
use tilewright_core::program::Program;
use tilewright_core::schedule::{Schedule, ScheduleError};
use tilewright_core::stmt::LoopKind;
use tilewright_core::visit::find_block;

use crate::cpu::postproc::{block_names, find};
use crate::cpu::rules::prefetch_inputs::{BESIDE, NEAR, NEXT_RUN};

/// How far ahead is near, in bytes of the widest stream: a few dozen lines, which come while those before them are computed with. On a
/// GELU of a large matrix, 4 KiB gained 1.5 × on one thread, 1 KiB and 2 KiB 1.15 ×; on two threads all gained 1.1 to 1.2 ×.
const NEAR_BYTES: i64 = 4096;

/// Prefetches in the innermost loop of each block that stays a loop.
pub(super) fn prefetch_inputs(schedule: &mut Schedule) -> Result<(), ScheduleError> {
    for name in block_names(schedule) {
        let (block, id) = find(schedule, &name)?;
        if let Some((position, ahead)) = plan(schedule.program(), id) {
            let loops = schedule.get_loops(block)?;
            match ahead {
                Ahead::Iterations(distance) => schedule.prefetch(loops[position], distance)?,
                Ahead::Beside => schedule.prefetch_for_siblings(loops[position])?,
            }
        }
    }
    Ok(())
}

/// What a loop asks for.
enum Ahead {
    /// What it reads itself, so many iterations later.
    Iterations(i64),
    /// What the loops beside it read next.
    Beside,
}

/// Which of the loops around a block asks, and for what.
fn plan(program: &Program, id: BlockId) -> Option<(usize, Ahead)> {
    let block = find_block(&program.body, id)?;
    let ahead = PREFETCH_CHOICE.get(&block.annotations)?;
    let path = loops_around(&program.body, id)?;
    let position = path.iter().rposition(|node| {
        node.kind == LoopKind::Serial && node.extent.as_constant().is_none_or(|extent| extent > 1)
    })?;
    let distance = match ahead {
        NEAR => {
            let inside =
                path[position + 1..].iter().filter_map(|node| node.extent.as_constant()).product::<i64>();
            let bytes = reads(block).into_iter().map(|buffer| program.buffer(buffer).dtype.bytes()).max()?;
            (NEAR_BYTES / inside.max(1).saturating_mul(bytes as i64)).max(1)
        }
        NEXT_RUN => path[position].extent.as_constant()?,
        BESIDE => return Some((position, Ahead::Beside)),
        _ => return None,
    };
    (distance <= MAX_PREFETCH).then_some((position, Ahead::Iterations(distance)))
}

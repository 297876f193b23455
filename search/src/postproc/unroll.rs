//! Writes out the inner loops of each block.

use tilewright_core::analysis::scope::{blocks, loops_around};
use tilewright_core::ids::BlockId;
use tilewright_core::program::Program;
use tilewright_core::schedule::{Schedule, ScheduleError};
use tilewright_core::stmt::{For, IterKind, LoopKind, Stmt};
use tilewright_core::visit::find_block;

use crate::postproc::{block_names, find, nest_setting};
use crate::rules::parallelize_vectorize_unroll::{UNROLL, UNROLL_REDUCTION};

/// The annotation on a loop of which several iterations are written out at once; read by the lowering.
pub(crate) const UNROLL_FACTOR: &str = "unroll_factor";

/// Unrolls, from the inside, the spatial loops of each block that hold it alone, while the copies stay
/// within the nest's setting; then lets some iterations of the reduction loop around them be written out.
pub(super) fn unroll_blocks(schedule: &mut Schedule) -> Result<(), ScheduleError> {
    for name in block_names(schedule) {
        let (block, id) = find(schedule, &name)?;
        let Some(plan) = plan(schedule.program(), id) else { continue };
        if plan.unrolled == 0 && plan.reduction.is_none() {
            continue;
        }
        let loops = schedule.get_loops(block)?;
        for target in &loops[plan.end - plan.unrolled..plan.end] {
            schedule.unroll(*target)?;
        }
        if let Some((position, factor)) = plan.reduction {
            schedule.annotate(loops[position], UNROLL_FACTOR, factor)?;
        }
    }
    Ok(())
}

struct Plan {
    /// One past the innermost loop to unroll.
    end: usize,
    /// How many loops to unroll, ending there.
    unrolled: usize,
    /// The reduction loop around them and how many of its iterations to write out.
    reduction: Option<(usize, i64)>,
}

fn plan(program: &Program, id: BlockId) -> Option<Plan> {
    let block = find_block(&program.body, id)?;
    let path = loops_around(&program.body, id)?;
    let settings = blocks(&path.first()?.body);
    let limit = nest_setting(&settings, UNROLL)?;
    let steps = nest_setting(&settings, UNROLL_REDUCTION).unwrap_or(1);
    let reduces = |node: &For| {
        block.iters.iter().any(|iter| iter.kind == IterKind::Reduce && iter.binding.mentions(node.var))
    };
    let mut end = path.len();
    if path.last().is_some_and(|node| node.kind == LoopKind::Vectorized) {
        end -= 1;
    }
    let mut copies = 1i64;
    let mut unrolled = 0;
    for node in path[..end].iter().rev() {
        let holds_one = matches!(&node.body, Stmt::For(_) | Stmt::Block(_));
        let Some(extent) = node.extent.as_constant() else { break };
        let fits = copies.saturating_mul(extent) <= limit;
        if node.kind != LoopKind::Serial || !holds_one || reduces(node) || !fits {
            break;
        }
        copies *= extent;
        unrolled += 1;
    }
    let around = end - unrolled;
    let reduction = around.checked_sub(1).filter(|position| {
        let node = path[*position];
        node.kind == LoopKind::Serial
            && reduces(node)
            && matches!(&node.body, Stmt::For(_) | Stmt::Block(_))
            && steps > 1
            && copies.saturating_mul(steps) <= limit.max(steps)
            && node.extent.as_constant().is_some_and(|extent| extent % steps == 0)
    });
    Some(Plan { end, unrolled, reduction: reduction.map(|position| (position, steps)) })
}

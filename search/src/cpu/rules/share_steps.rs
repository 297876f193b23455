//! Recurrences that execute their steps together.

use std::sync::Arc;

use tilewright_core::analysis::block::is_ordered_by;
use tilewright_core::analysis::scope::{blocks, loops_around};
use tilewright_core::annotation::PARALLEL_STEPS;
use tilewright_core::program::Program;
use tilewright_core::schedule::{BlockRv, Schedule};
use tilewright_core::stmt::{Block, For, Stmt};
use tilewright_macros::schedule_rule;

use crate::cpu::postproc::parallel::LEAST_OF_STEP;
use crate::cpu::seed::row_limit;
use crate::space::rule::{RuleExtension, RuleResult};
use crate::space::rules::block::{block_of, is_reduction_of_step, own_points};
use crate::space::rules::tiles::{UsefulTiles, sample_tile};

/// The fewest sequences that make a useful group, if there are as many.
const LEAST_SEQUENCES: i64 = 4;

/// How often threads run recurrences of their own, and share steps. Where tiles leave them nothing to share, they run recurrences of their own in
/// either case, so that a change of a tile leads from one to the other.
const SHARES: [f64; 2] = [0.15, 0.85];

/// Cuts a loop around a recurrence, such as one over the sequences of a batch, into groups that run through the steps together: the
/// products of a step then use each weight for all sequences of a group. A group of one runs alone.
///
/// A decision lets threads share large steps of one recurrence after the other, rather than run one recurrence each: their caches then hold its weights
/// together.
#[schedule_rule(target = "cpu", after = "auto_inline", before = "multi_level_tiling")]
pub fn share_steps(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    let found = block_of(schedule, block)?;
    let path = loops_around(&schedule.program().body, found.id).unwrap_or_default();
    let Some(depth) = recurrence(schedule.program(), &path, &found) else { return schedule.unchanged() };
    let steps = blocks(&path[depth + 1].body);
    let is_large = steps.iter().any(|block| own_points(schedule.program(), block) >= LEAST_OF_STEP);
    if is_large && schedule.threads() > 1 {
        let drawn = schedule.sample_categorical(&[0, 1], &SHARES)?;
        schedule.annotate(block, PARALLEL_STEPS, drawn)?;
    }
    let target = schedule.get_loops(block)?[depth];
    let most = row_limit(schedule.cpu()?);
    let useful = UsefulTiles { least: LEAST_SEQUENCES, most, most_dividing: most, multiple: 1 };
    let factors = sample_tile(schedule, target, 2, useful)?;
    let parts = schedule.split(target, &[Some(factors[0]), Some(factors[1])])?;
    schedule.sink_loop(parts[1])?;
    schedule.changed()
}

/// The position of the innermost loop over several points that holds nothing but a recurrence with a reduction, of which the block is
/// the first.
fn recurrence(program: &Program, path: &[&Arc<For>], block: &Arc<Block>) -> Option<usize> {
    let depth = path.windows(2).position(|pair| {
        let inside = blocks(&pair[1].body);
        is_ordered_by(block, pair[1].var) && inside.first().is_some_and(|first| first.id == block.id)
    })?;
    let (outer, steps) = (path[depth], path[depth + 1]);
    let is_chain = matches!(&outer.body, Stmt::For(node) if node.id == steps.id);
    let has_several = outer.extent.as_constant().is_some_and(|extent| extent > 1);
    let mut inside = blocks(&steps.body).into_iter();
    let reduces = inside.any(|block| is_reduction_of_step(program, block));
    (is_chain && has_several && reduces).then_some(depth)
}

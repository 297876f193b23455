//! Copies into shared memory ahead of the products that need them.

use tilewright_core::annotation::{COPY_STAGES, TILED_LOOPS};
use tilewright_core::schedule::{BlockRv, Schedule};
use tilewright_macros::schedule_rule;

use crate::space::rule::{RuleExtension, RuleResult};
use crate::space::rules::block::block_of;

/// The stages of a pipeline, with the probabilities of the choices. One stage is no pipeline.
const STAGES: [(i64, f64); 4] = [(1, 0.25), (2, 0.25), (3, 0.3), (4, 0.2)];

/// Draws how many tiles of the operands of a tiled block are in shared memory at once: one that is computed with, and others that are
/// copied asynchronously meanwhile. A postprocessor makes the pipeline, as the loops are known only then.
#[schedule_rule(target = "gpu", after = "multi_level_thread_tiling", before = "inline_into_copies")]
pub fn pipeline_copies(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    let found = block_of(schedule, block)?;
    if !TILED_LOOPS.is_in(&found.annotations) || COPY_STAGES.is_in(&found.annotations) {
        return schedule.unchanged();
    }
    let (choices, weights): (Vec<i64>, Vec<f64>) = STAGES.into_iter().unzip();
    let stages = schedule.sample_categorical(&choices, &weights)?;
    schedule.annotate(block, COPY_STAGES, stages)?;
    schedule.changed()
}

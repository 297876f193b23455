//! Computing a producer inside its consumers' loops.

use tilewright_core::analysis::constant::constant_blocks;
use tilewright_core::analysis::scope::consumers;
use tilewright_core::annotation::{RANDOM_COMPUTE_PRODUCER, TILING};
use tilewright_core::schedule::{BlockRv, Schedule};
use tilewright_macros::schedule_rule;

use crate::space::rule::{RuleExtension, RuleResult};
use crate::space::rules::block::{block_of, has_own_loops, has_trivial_bindings};

/// Draws the compute location of an untiled block in loops of its own: where it is, or at a loop of its consumers. A block that can
/// run ahead of calls stays where it is.
#[schedule_rule(target = "cpu", after = "parallelize_vectorize_unroll")]
pub fn random_compute_location(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    let found = block_of(schedule, block)?;
    let is_plain = RANDOM_COMPUTE_PRODUCER.is_in(&found.annotations) || has_trivial_bindings(&found);
    if !has_own_loops(schedule.program(), &found)
        || !is_plain
        || TILING.is_in(&found.annotations)
        || consumers(schedule.program(), &found).is_empty()
        || constant_blocks(schedule.program()).contains(&found.id)
    {
        return schedule.unchanged();
    }
    let location = schedule.sample_compute_location(block)?;
    schedule.compute_at(block, location)?;
    schedule.changed()
}

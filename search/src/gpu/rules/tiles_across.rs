//! Tiles of operands that lie across a result.

use tilewright_core::annotation::TILING;
use tilewright_core::schedule::{BlockRv, Schedule};
use tilewright_macros::schedule_rule;

use crate::gpu::transposed::transpose_in_tiles;
use crate::space::rule::{RuleExtension, RuleOutcome, RuleResult};
use crate::space::rules::block::block_of;

/// Copies tiles of an operand whose neighbours in memory are no neighbours in the result into shared memory, as a variant besides loads of
/// single elements. Blocks that are tiled are left alone.
#[schedule_rule(target = "gpu", after = "cross_thread_reduction", before = "auto_bind")]
pub fn tiles_across(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    if TILING.is_in(&block_of(schedule, block)?.annotations) {
        return schedule.unchanged();
    }
    let mut variant = schedule.fork();
    match transpose_in_tiles(&mut variant, block) {
        Ok(true) => Ok(RuleOutcome::Variants(vec![variant, schedule.fork()])),
        _ => schedule.unchanged(),
    }
}

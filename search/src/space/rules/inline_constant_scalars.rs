//! Inlining of single constants.

use tilewright_core::analysis::block::{complete_store, reads};
use tilewright_core::schedule::{BlockRv, Schedule};
use tilewright_macros::schedule_rule;

use crate::space::rule::{RuleExtension, RuleResult};
use crate::space::rules::block::block_of;

/// Inlines a block that writes one element and reads nothing.
#[schedule_rule(target = "any", after = "custom_rule", before = "auto_inline")]
pub fn inline_constant_scalars(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    let found = block_of(schedule, block)?;
    let is_scalar = complete_store(&found).is_some_and(|store| store.indices.is_empty());
    if !is_scalar || !reads(&found).is_empty() {
        return schedule.unchanged();
    }
    schedule.compute_inline(block)?;
    schedule.changed()
}

//! Custom rules for annotated blocks.

use tilewright_core::annotation::SCHEDULE_RULE;
use tilewright_core::schedule::{BlockRv, Schedule};
use tilewright_macros::schedule_rule;

use crate::space::rule::{RuleEntry, RuleExtension, RuleResult};
use crate::space::rules::block::block_of;

/// Applies to a block annotated `schedule_rule = "name"` the linked rule of that name for the target, and no other: the space
/// generator keeps every other rule away from such a block. The name `none` means no rule at all.
#[schedule_rule(target = "any", before = "inline_constant_scalars")]
pub fn custom_rule(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    let found = block_of(schedule, block)?;
    let Some(name) = SCHEDULE_RULE.get(&found.annotations) else {
        return schedule.unchanged();
    };
    let kind = schedule.target().kind();
    let is_meant = |rule: &&RuleEntry| *rule.name == *name && rule.serves(kind);
    let named = inventory::iter::<RuleEntry>.into_iter().find(is_meant);
    match named {
        Some(rule) => (rule.apply)(schedule, block),
        None => schedule.unchanged(),
    }
}

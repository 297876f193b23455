//! Inlining of producers into copies in shared memory.

use tilewright_core::analysis::block::writes;
use tilewright_core::program::Scope;
use tilewright_core::schedule::{BlockRv, Schedule};
use tilewright_macros::schedule_rule;

use crate::space::rule::{RuleExtension, RuleResult};
use crate::space::rules::auto_inline::auto_inline;
use crate::space::rules::block::block_of;

/// Inlines a block whose consumers have become copies of tiles, such as the padding of a convolution: its values are computed once
/// for each tile that is copied, not once for each product, so that they may be expensive. The copies themselves stay.
#[schedule_rule(target = "gpu", after = "multi_level_thread_tiling", before = "cross_thread_reduction")]
pub fn inline_into_copies(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    let found = block_of(schedule, block)?;
    let is_copy = writes(&found).iter().any(|buffer| schedule.program().buffer(*buffer).scope != Scope::Global);
    if is_copy { schedule.unchanged() } else { auto_inline(schedule, block) }
}

//! Inlining of producers into copies in shared memory.

use tilewright_core::analysis::block::{complete_store, writes};
use tilewright_core::analysis::scope::{consumers, writes_parameter};
use tilewright_core::program::Scope;
use tilewright_core::schedule::{BlockRv, Schedule};
use tilewright_macros::schedule_rule;

use crate::space::rule::{RuleExtension, RuleResult};
use crate::space::rules::block::block_of;

/// Inlines an element-wise block whose consumers are copies of tiles in shared memory, such as the padding of a convolution and the
/// transposition of a factor: each value is then computed once for each tile that it is copied into, not once for each product, and in
/// the order of the copy.
#[schedule_rule(target = "gpu", after = "multi_level_thread_tiling", before = "cross_thread_reduction")]
pub fn inline_into_copies(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    let found = block_of(schedule, block)?;
    let program = schedule.program();
    let is_copy = |block: &tilewright_core::stmt::Block| {
        let written = writes(block);
        !written.is_empty() && written.iter().all(|buffer| program.buffer(*buffer).scope == Scope::Shared)
    };
    let readers = consumers(program, &found);
    let suits = complete_store(&found).is_some()
        && !writes_parameter(program, &found)
        && !is_copy(&found)
        && !readers.is_empty()
        && readers.iter().all(|reader| is_copy(reader));
    if !suits {
        return schedule.unchanged();
    }
    schedule.compute_inline(block)?;
    schedule.changed()
}

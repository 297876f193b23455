//! How far ahead a block asks for what it reads from memory.

use tilewright_core::analysis::block::reads;
use tilewright_core::program::Program;
use tilewright_core::schedule::{BlockRv, Schedule};
use tilewright_core::stmt::Block;
use tilewright_core::target::Target;
use tilewright_macros::schedule_rule;

use crate::rule::{RuleExtension, RuleResult};
use crate::rules::block_of;

/// The annotation that says how far ahead a block asks: [`NOT`], [`NEAR`] or [`NEXT_RUN`].
pub const AHEAD: &str = "ahead";
/// Not at all: the machine sees most streams coming.
pub const NOT: i64 = 0;
/// A few dozen lines: for streams in short runs, whose beginnings the machine does not see coming, and where so much is computed with
/// each line that the processor does not come to the next ones by itself.
pub const NEAR: i64 = 1;
/// A whole run of its innermost loop, such as the next row while this one is computed with, when memory would wait.
pub const NEXT_RUN: i64 = 2;

/// Notes on a block that reads a tensor larger than the cores' own caches how far ahead it asks for it; the postprocessor
/// of the same name does it.
#[schedule_rule(target = "cpu", after = "multi_level_tiling", before = "parallelize_vectorize_unroll")]
pub fn prefetch_inputs(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    let found = block_of(schedule, block)?;
    let is_open = !found.annotations.contains_key(AHEAD)
        && reads_large_tensor(schedule.program(), &found, schedule.target());
    if !is_open {
        return schedule.unchanged();
    }
    let ahead = schedule.sample_categorical(&[NOT, NEAR, NEXT_RUN], &[0.5, 0.25, 0.25])?;
    schedule.annotate(block, AHEAD, ahead)?;
    schedule.changed()
}

fn reads_large_tensor(program: &Program, block: &Block, target: &Target) -> bool {
    let least = u64::from(target.cores) * target.l2_bytes;
    reads(block)
        .into_iter()
        .filter(|buffer| program.access(*buffer).is_some())
        .any(|buffer| program.buffer(buffer).constant_bytes().is_some_and(|bytes| bytes > least))
}

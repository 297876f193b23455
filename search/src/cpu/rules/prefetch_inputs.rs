//! The prefetch distance of blocks that read from memory.

use tilewright_core::analysis::block::{reads, writes};
use tilewright_core::analysis::scope::blocks;
use tilewright_core::annotation::PREFETCH_CHOICE;
use tilewright_core::ids::BufferId;
use tilewright_core::program::Program;
use tilewright_core::schedule::{BlockRv, Schedule};
use tilewright_macros::schedule_rule;

use crate::cpu::rules::own_cache_bytes;
use crate::space::rule::{RuleExtension, RuleResult};
use crate::space::rules::block::block_of;

/// No prefetch: the hardware prefetcher follows most streams.
pub const NONE: i64 = 0;
/// A prefetch distance of a few dozen cache lines. It helps with streams of short runs, whose starts the hardware prefetcher misses,
/// and where the core computes so long with each line that its out-of-order window does not reach the next lines.
pub const NEAR: i64 = 1;
/// A prefetch distance of one whole run of the block's innermost loop: memory brings the next row while the core computes with this
/// one.
pub const NEXT_RUN: i64 = 2;

/// Prefetches, while the block writes, the inputs that its sibling blocks read next. It helps a softmax of long rows, whose phases
/// alternate: memory is idle while the core computes exponentials.
pub const SIBLINGS: i64 = 3;

/// Annotates a block that reads a tensor larger than the cores' own caches with its prefetch distance, and a block that writes such a
/// tensor with whether it prefetches for its siblings. The postprocessor of the same name inserts the prefetches.
#[schedule_rule(target = "cpu", after = "multi_level_tiling", before = "parallelize_vectorize_unroll")]
pub fn prefetch_inputs(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    let found = block_of(schedule, block)?;
    if PREFETCH_CHOICE.is_in(&found.annotations) {
        return schedule.unchanged();
    }
    let (program, caches) = (schedule.program(), own_cache_bytes(schedule)?);
    let choice = if touches_large_tensor(program, &reads(&found), caches) {
        schedule.sample_categorical(&[NONE, NEAR, NEXT_RUN], &[0.5, 0.25, 0.25])?
    } else if touches_large_tensor(program, &writes(&found), caches)
        && blocks(&program.body).iter().any(|other| touches_large_tensor(program, &reads(other), caches))
    {
        schedule.sample_categorical(&[NONE, SIBLINGS], &[0.5, 0.5])?
    } else {
        return schedule.unchanged();
    };
    schedule.annotate(block, PREFETCH_CHOICE, choice)?;
    schedule.changed()
}

/// Whether one of the buffers is a tensor larger than the cores' own caches.
fn touches_large_tensor(program: &Program, buffers: &[BufferId], caches: u64) -> bool {
    let is_large =
        |buffer: &BufferId| program.buffer(*buffer).constant_bytes().is_some_and(|bytes| bytes > caches);
    buffers.iter().any(|buffer| program.access(*buffer).is_some() && is_large(buffer))
}

//! How far ahead a block asks for what it reads from memory.

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

/// Not at all: the machine sees most streams coming.
pub const NOT: i64 = 0;
/// A few dozen lines: for streams in short runs, whose beginnings the machine does not see coming, and where so much is computed with
/// each line that the processor does not come to the next ones by itself.
pub const NEAR: i64 = 1;
/// A whole run of its innermost loop, such as the next row while this one is computed with, when memory would wait.
pub const NEXT_RUN: i64 = 2;

/// For what the blocks beside it read next, while it writes itself. For a softmax of long rows, whose memory would wait for the
/// exponentials and for the results in turns.
pub const BESIDE: i64 = 3;

/// Notes on a block that reads a tensor larger than the cores' own caches how far ahead it asks for it, and on one that writes such a
/// tensor whether it asks for what others read; the postprocessor of the same name does it.
#[schedule_rule(target = "cpu", after = "multi_level_tiling", before = "parallelize_vectorize_unroll")]
pub fn prefetch_inputs(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    let found = block_of(schedule, block)?;
    if PREFETCH_CHOICE.is_in(&found.annotations) {
        return schedule.unchanged();
    }
    let (program, caches) = (schedule.program(), own_cache_bytes(schedule)?);
    let choice = if touches_large_tensor(program, &reads(&found), caches) {
        schedule.sample_categorical(&[NOT, NEAR, NEXT_RUN], &[0.5, 0.25, 0.25])?
    } else if touches_large_tensor(program, &writes(&found), caches)
        && blocks(&program.body).iter().any(|other| touches_large_tensor(program, &reads(other), caches))
    {
        schedule.sample_categorical(&[NOT, BESIDE], &[0.5, 0.5])?
    } else {
        return schedule.unchanged();
    };
    schedule.annotate(block, PREFETCH_CHOICE, choice)?;
    schedule.changed()
}

/// Whether one of some buffers is a tensor of more bytes than the cores' own caches hold.
fn touches_large_tensor(program: &Program, buffers: &[BufferId], caches: u64) -> bool {
    let is_large =
        |buffer: &BufferId| program.buffer(*buffer).constant_bytes().is_some_and(|bytes| bytes > caches);
    buffers.iter().any(|buffer| program.access(*buffer).is_some() && is_large(buffer))
}

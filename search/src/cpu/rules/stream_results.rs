//! Whether large results are written around the caches.

use tilewright_core::analysis::block::writes;
use tilewright_core::analysis::scope::readers;
use tilewright_core::annotation::STREAM;
use tilewright_core::program::{Access, Program};
use tilewright_core::schedule::{BlockRv, Schedule};
use tilewright_core::stmt::Block;
use tilewright_macros::schedule_rule;

use crate::cpu::rules::own_cache_bytes;
use crate::space::rule::{RuleExtension, RuleResult};
use crate::space::rules::block::block_of;

/// The least size of a streamed result, as a multiple of all second-level caches together. The next reader does not find a result of
/// this size in a cache: the caches beyond are shared with other programs, and slower.
const LARGE: u64 = 8;

/// Annotates a block that writes a large result with whether its stores are non-temporal. The postprocessor of the same name streams
/// them.
#[schedule_rule(target = "cpu", after = "multi_level_tiling", before = "parallelize_vectorize_unroll")]
pub fn stream_results(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    let found = block_of(schedule, block)?;
    let (program, caches) = (schedule.program(), own_cache_bytes(schedule)?);
    let is_open = !STREAM.is_in(&found.annotations) && writes_large_result(program, &found, caches);
    if !is_open {
        return schedule.unchanged();
    }
    let streams = schedule.sample_categorical(&[0, 1], &[0.4, 0.6])?;
    schedule.annotate(block, STREAM, streams)?;
    schedule.changed()
}

/// Whether a block writes a large result that no other block reads.
fn writes_large_result(program: &Program, block: &Block, caches: u64) -> bool {
    let least = LARGE * caches;
    writes(block).into_iter().any(|buffer| {
        program.access(buffer).is_some_and(Access::is_written)
            && program.buffer(buffer).constant_bytes().is_some_and(|bytes| bytes >= least)
            && readers(program, buffer).iter().all(|reader| reader.id == block.id)
    })
}

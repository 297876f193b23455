//! Makes the stores of large results non-temporal, where they are annotated for it.

use tilewright_core::analysis::block::writes;
use tilewright_core::analysis::scope::{blocks, loops_around};
use tilewright_core::annotation::STREAM;
use tilewright_core::ids::BlockId;
use tilewright_core::program::Program;
use tilewright_core::schedule::{Schedule, ScheduleError};
use tilewright_core::visit::find_block;

use crate::cpu::postproc::{block_names, find, nest_annotation};

/// Streams the results of each block that has the annotation, or in whose nest another block has it: the block that copies a finished
/// tile to the result stands beside the block that computes the tile.
pub(super) fn stream_results(schedule: &mut Schedule) -> Result<(), ScheduleError> {
    for name in block_names(schedule) {
        let (block, id) = find(schedule, &name)?;
        for write in streamed(schedule.program(), id) {
            // A result that is read again stays in a cache.
            match schedule.stream_writes(block, write) {
                Ok(()) | Err(ScheduleError::ReadAgain { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// The positions of streamed results among the buffers that a block writes.
fn streamed(program: &Program, id: BlockId) -> Vec<i64> {
    let Some(block) = find_block(&program.body, id) else { return Vec::new() };
    let path = loops_around(&program.body, id).unwrap_or_default();
    let nest = || nest_annotation(&blocks(&path.first()?.body), STREAM);
    if STREAM.get(&block.annotations).or_else(nest) != Some(true) {
        return Vec::new();
    }
    let is_result = |(_, buffer): &(i64, _)| program.access(*buffer).is_some();
    (0..).zip(writes(block)).filter(is_result).map(|(number, _)| number).collect()
}

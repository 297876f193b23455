//! Lets large results be written around the caches, where the schedule says so.

use tilewright_core::analysis::block::writes;
use tilewright_core::analysis::scope::{blocks, loops_around};
use tilewright_core::annotation::STREAM;
use tilewright_core::ids::BlockId;
use tilewright_core::program::Program;
use tilewright_core::schedule::{Schedule, ScheduleError};
use tilewright_core::visit::find_block;

use crate::cpu::postproc::{block_names, find, nest_setting};

/// Streams the results of the blocks that are to, or in whose nest another one is: the copy of a tile to its place stands beside
/// the block that it is a copy for.
pub(super) fn stream_results(schedule: &mut Schedule) -> Result<(), ScheduleError> {
    for name in block_names(schedule) {
        let (block, id) = find(schedule, &name)?;
        for write in streamed(schedule.program(), id) {
            // What is read again is better in a cache.
            match schedule.stream_writes(block, write) {
                Ok(()) | Err(ScheduleError::ReadAgain { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// The numbers of the results among what a block writes, when they are to be streamed.
fn streamed(program: &Program, id: BlockId) -> Vec<i64> {
    let Some(block) = find_block(&program.body, id) else { return Vec::new() };
    let path = loops_around(&program.body, id).unwrap_or_default();
    let nest = || nest_setting(&blocks(&path.first()?.body), STREAM);
    if STREAM.get(&block.annotations).or_else(nest) != Some(true) {
        return Vec::new();
    }
    let is_result = |(_, buffer): &(i64, _)| program.access(*buffer).is_some();
    (0..).zip(writes(block)).filter(is_result).map(|(number, _)| number).collect()
}

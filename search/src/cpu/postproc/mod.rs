//! The built-in postprocessors of a CPU: one file each.

mod layout;
mod loop_order;
mod panels;
pub(crate) mod parallel;
mod prefetch;
mod reduction;
mod stream;
mod strides;
mod transposed;
mod unroll;
mod vectorize;
pub(crate) mod verify;

use tilewright_core::analysis::scope::blocks;
use tilewright_core::annotation::{AnnotationValue, Key};
use tilewright_core::ids::BlockId;
use tilewright_core::schedule::{BlockRv, Schedule, ScheduleError};
use tilewright_core::stmt::{Block, Symbol};

use crate::space::postproc::{Postprocessor, Postprocessors};

/// All postprocessors in order: layouts before loops are split for threads and lanes, the limits last.
pub(crate) fn all() -> Postprocessors {
    let all = [
        Postprocessor::built_in("lay_out_constants", |schedule| Ok(layout::lay_out_constants(schedule)?)),
        Postprocessor::built_in("lay_out_panels", |schedule| Ok(panels::lay_out_panels(schedule)?)),
        Postprocessor::built_in("parallelize_nests", |schedule| Ok(parallel::parallelize_nests(schedule)?)),
        Postprocessor::built_in("decompose_reductions", |schedule| {
            Ok(reduction::decompose_reductions(schedule)?)
        }),
        Postprocessor::built_in("vectorize_blocks", |schedule| Ok(vectorize::vectorize_blocks(schedule)?)),
        Postprocessor::built_in("unroll_blocks", |schedule| Ok(unroll::unroll_blocks(schedule)?)),
        Postprocessor::built_in("stream_results", |schedule| Ok(stream::stream_results(schedule)?)),
        Postprocessor::built_in("prefetch_inputs", |schedule| Ok(prefetch::prefetch_inputs(schedule)?)),
        Postprocessor::built_in("verify_limits", |schedule| {
            verify::verify_limits(schedule.program(), schedule.context())
        }),
    ];
    Vec::from(all).into()
}

/// The value of an annotation for a whole nest: that of the first block that has it.
fn nest_annotation<V: AnnotationValue>(blocks: &[&std::sync::Arc<Block>], key: Key<V>) -> Option<V> {
    blocks.iter().find_map(|block| key.get(&block.annotations))
}

/// The names of all blocks, in program order.
fn block_names(schedule: &Schedule) -> Vec<Symbol> {
    blocks(&schedule.program().body).iter().map(|block| block.name.clone()).collect()
}

/// A block by name, with its identity.
fn find(schedule: &mut Schedule, name: &str) -> Result<(BlockRv, BlockId), ScheduleError> {
    let block = schedule.get_block(name)?;
    let id = schedule.values().block(block)?;
    Ok((block, id))
}

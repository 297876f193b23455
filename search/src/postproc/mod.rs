//! Postprocessors: what turns a drawn schedule into one that can be compiled well, or refuses it.
//!
//! They are applied after the mark [`enter_postproc`](tilewright_core::schedule::prim::EnterPostproc), in the
//! order of [`apply`], and use the same primitives as rules, so that the whole result is one trace.

mod across;
mod layout;
mod loop_order;
mod panels;
mod parallel;
mod prefetch;
mod reduction;
mod stream;
mod strides;
mod unroll;

pub(crate) use unroll::UNROLL_FACTOR;
mod vectorize;
pub mod verify;

use tilewright_core::analysis::scope::blocks;
use tilewright_core::ids::BlockId;
use tilewright_core::schedule::{BlockRv, Schedule, ScheduleError};
use tilewright_core::stmt::{Annotation, Block, Symbol};

/// Why a candidate was refused before it was compiled: a short, stable word for statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rejection(pub &'static str);

impl From<ScheduleError> for Rejection {
    fn from(error: ScheduleError) -> Self {
        Rejection(error.reason())
    }
}

impl std::fmt::Display for Rejection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

/// Applies every postprocessor.
///
/// # Errors
/// When a primitive refuses, or the result breaks a limit of the machine.
pub fn apply(schedule: &mut Schedule) -> Result<(), Rejection> {
    schedule.enter_postproc()?;
    layout::lay_out_constants(schedule)?;
    panels::lay_out_panels(schedule)?;
    parallel::parallelize_nests(schedule)?;
    reduction::decompose_reductions(schedule)?;
    vectorize::vectorize_blocks(schedule)?;
    unroll::unroll_blocks(schedule)?;
    stream::stream_results(schedule)?;
    prefetch::prefetch_inputs(schedule)?;
    verify::verify_limits(schedule.program(), schedule.target())
}

/// An integer annotation of a block.
fn setting(block: &Block, name: &str) -> Option<i64> {
    match block.annotations.get(name) {
        Some(Annotation::Int(value)) => Some(*value),
        _ => None,
    }
}

/// The value of a setting for a whole nest: that of the first block that has it.
fn nest_setting(blocks: &[&std::sync::Arc<Block>], name: &str) -> Option<i64> {
    blocks.iter().find_map(|block| setting(block, name))
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

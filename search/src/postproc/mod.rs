//! Postprocessors: what turns a drawn schedule into one that can be compiled well, or refuses it.
//!
//! They are applied one after the other, after the mark [`enter_postproc`](tilewright_core::schedule::prim::EnterPostproc), and
//! use the same primitives as rules, so that the whole result is one trace. Users' postprocessors are made with
//! [`Postprocessor::new`] and put among the built-in ones:
//!
//! ```
//! use tilewright_core::target::TargetKind;
//! use tilewright_search::postproc::{Postprocessor, Postprocessors, Rejection};
//!
//! /// Refuses what would take long to compile.
//! let is_short = Postprocessor::new("is_short", |schedule| {
//!     let steps = schedule.trace().steps().len();
//!     if steps > 200 { Err(Rejection("too_many_steps")) } else { Ok(()) }
//! });
//! let postprocessors = Postprocessors::built_in(TargetKind::Cpu).before("verify_limits", is_short)?;
//! # assert_eq!(postprocessors.names().len(), 10);
//! # Ok::<(), tilewright_search::chain::ChainError>(())
//! ```

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

use std::panic::{AssertUnwindSafe, catch_unwind};

use tilewright_core::analysis::scope::blocks;
use tilewright_core::ids::BlockId;
use tilewright_core::schedule::{BlockRv, Schedule, ScheduleError};
use tilewright_core::stmt::{Annotation, Block, Symbol};
use tilewright_core::target::TargetKind;

use crate::chain::{Chain, Part};

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

/// What a postprocessor does.
pub type Postprocess = fn(&mut Schedule) -> Result<(), Rejection>;

/// Edits a drawn schedule, or refuses it.
#[derive(Clone, Copy, Debug)]
pub struct Postprocessor {
    name: &'static str,
    apply: Postprocess,
    is_built_in: bool,
}

impl Postprocessor {
    /// A postprocessor of a name. One that panics refuses the schedule; one that does not come to an end cannot be ended.
    pub const fn new(name: &'static str, apply: Postprocess) -> Self {
        Postprocessor { name, apply, is_built_in: false }
    }

    fn apply(&self, schedule: &mut Schedule) -> Result<(), Rejection> {
        if self.is_built_in {
            return (self.apply)(schedule);
        }
        catch_unwind(AssertUnwindSafe(|| (self.apply)(schedule))).unwrap_or(Err(PANIC))
    }
}

/// The reason of a postprocessor that panics.
const PANIC: Rejection = Rejection("postprocessor_panic");

impl Part for Postprocessor {
    const KIND: &'static str = "postprocessor";

    fn name(&self) -> &'static str {
        self.name
    }
}

/// Postprocessors in the order in which they are applied.
pub type Postprocessors = Chain<Postprocessor>;

impl Postprocessors {
    /// Those for a kind of target. The order matters: layouts before loops are cut for threads and lanes, the limits last.
    pub fn built_in(kind: TargetKind) -> Self {
        let cpu: &[(&'static str, Postprocess)] = &[
            ("lay_out_constants", |schedule| Ok(layout::lay_out_constants(schedule)?)),
            ("lay_out_panels", |schedule| Ok(panels::lay_out_panels(schedule)?)),
            ("parallelize_nests", |schedule| Ok(parallel::parallelize_nests(schedule)?)),
            ("decompose_reductions", |schedule| Ok(reduction::decompose_reductions(schedule)?)),
            ("vectorize_blocks", |schedule| Ok(vectorize::vectorize_blocks(schedule)?)),
            ("unroll_blocks", |schedule| Ok(unroll::unroll_blocks(schedule)?)),
            ("stream_results", |schedule| Ok(stream::stream_results(schedule)?)),
            ("prefetch_inputs", |schedule| Ok(prefetch::prefetch_inputs(schedule)?)),
            ("verify_limits", |schedule| verify::verify_limits(schedule.program(), schedule.target())),
        ];
        let of_kind = match kind {
            TargetKind::Cpu => cpu,
            TargetKind::Gpu => &[],
        };
        let made = of_kind.iter().map(|&(name, apply)| Postprocessor { name, apply, is_built_in: true });
        made.collect::<Vec<_>>().into()
    }

    /// Applies them one after the other.
    ///
    /// # Errors
    /// When one refuses.
    pub fn apply(&self, schedule: &mut Schedule) -> Result<(), Rejection> {
        schedule.enter_postproc()?;
        self.parts().iter().try_for_each(|postprocessor| postprocessor.apply(schedule))
    }
}

/// Applies the built-in postprocessors for the schedule's target.
///
/// # Errors
/// When a primitive refuses, or the result breaks a limit of the machine.
pub fn apply(schedule: &mut Schedule) -> Result<(), Rejection> {
    Postprocessors::built_in(schedule.target().kind()).apply(schedule)
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

//! The static costs of scheduled kernels, as features of the cost model and as a report.
//!
//! Each nest of a program becomes one kernel. Its threads, memory and accesses are read off the `Blocks` level: nothing is lowered. The
//! [draft model](cost) estimates the time of a kernel from them; the report prints them.

mod access;
mod block;
mod by_warp;
pub mod cost;
mod kernel;
mod memory;
mod place;
mod product;
mod report;
mod row;

use tilewright_core::program::Program;
use tilewright_core::target::RunContext;

use crate::model::ProgramFeatures;
use crate::space::spec::FeatureError;

pub(crate) use kernel::kernels;
pub(crate) use memory::stride_of;
pub use report::{KernelReport, report};
pub use row::WIDTH;

/// The features of a scheduled program at the `Blocks` level: a row for each block, and the estimate of the draft model.
///
/// # Errors
/// When the target is no GPU.
pub fn extract(program: &Program, context: &RunContext) -> Result<ProgramFeatures, FeatureError> {
    let gpu = context.target.gpu()?;
    let kernels = kernels(program, gpu);
    let mut values = Vec::new();
    for kernel in &kernels {
        kernel.blocks.iter().for_each(|block| row::push(&mut values, kernel, block, gpu));
    }
    Ok(ProgramFeatures::new(values, WIDTH, cost::score(program, &kernels, gpu))?)
}

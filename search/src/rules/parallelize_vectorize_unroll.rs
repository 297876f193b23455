//! How much to run in parallel, in lanes, and written out.

use tilewright_core::analysis::constant::constant_blocks;
use tilewright_core::analysis::scope::{blocks, loops_around};
use tilewright_core::schedule::{BlockRv, Schedule, ScheduleError};
use tilewright_macros::schedule_rule;

use crate::rule::{RuleExtension, RuleResult};
use crate::rules::block_of;

/// The annotation with the most iterations that a parallel loop should have; 1 means serial.
pub const PARALLEL: &str = "parallel";
/// The annotation with the most elements that a vectorized loop should have.
pub const VECTORIZE: &str = "vectorize";
/// The annotation with the most copies of a statement that unrolling may make.
pub const UNROLL: &str = "unroll";
/// The annotation with the number of iterations of the innermost reduction loop that are written out.
pub const UNROLL_REDUCTION: &str = "unroll_reduction";

/// Parallel iterations per core: 16 balance well, fewer cost less to start.
const JOBS_PER_CORE: [i64; 3] = [1, 4, 16];

/// Notes on the last block of each nest how far the postprocessor may go. Nothing is done here, so
/// that later rules still see plain loops.
#[schedule_rule(target = "cpu", after = "multi_level_tiling", before = "random_compute_location")]
pub fn parallelize_vectorize_unroll(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    let found = block_of(schedule, block)?;
    if found.annotations.contains_key(UNROLL) || !is_last_of_nest(schedule, block)? {
        return schedule.unchanged();
    }
    if constant_blocks(schedule.program()).contains(&found.id) {
        note_constant_nest(schedule, block)?;
        return schedule.changed();
    }
    let cores = i64::from(schedule.target().cores);
    if cores > 1 {
        let mut candidates = vec![1];
        candidates.extend(JOBS_PER_CORE.map(|jobs| jobs * cores));
        let parallel = schedule.sample_categorical(&candidates, &[0.1, 0.2, 0.3, 0.4])?;
        schedule.annotate(block, PARALLEL, parallel)?;
    }
    let lanes = i64::from(schedule.target().lanes(4));
    let vectorize =
        schedule.sample_categorical(&[lanes, 2 * lanes, 4 * lanes, 8 * lanes], &[0.15, 0.3, 0.35, 0.2])?;
    schedule.annotate(block, VECTORIZE, vectorize)?;
    let unroll = schedule.sample_categorical(&[1, 16, 64, 256], &[0.1, 0.3, 0.4, 0.2])?;
    schedule.annotate(block, UNROLL, unroll)?;
    let reduction = schedule.sample_categorical(&[1, 2, 4, 8], &[0.4, 0.2, 0.3, 0.1])?;
    schedule.annotate(block, UNROLL_REDUCTION, reduction)?;
    schedule.changed()
}

/// Notes what a nest gets that runs ahead of calls, which is not worth a decision.
pub(crate) fn note_constant_nest(schedule: &mut Schedule, block: BlockRv) -> Result<(), ScheduleError> {
    let (cores, lanes) = (i64::from(schedule.target().cores), i64::from(schedule.target().lanes(4)));
    if cores > 1 {
        schedule.annotate(block, PARALLEL, JOBS_PER_CORE[1] * cores)?;
    }
    schedule.annotate(block, VECTORIZE, 4 * lanes)?;
    schedule.annotate(block, UNROLL, 16)
}

fn is_last_of_nest(schedule: &Schedule, block: BlockRv) -> Result<bool, ScheduleError> {
    let found = block_of(schedule, block)?;
    let path = loops_around(&schedule.program().body, found.id).unwrap_or_default();
    let Some(outermost) = path.first() else { return Ok(true) };
    Ok(blocks(&outermost.body).last().is_some_and(|last| last.id == found.id))
}

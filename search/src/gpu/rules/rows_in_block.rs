//! All steps of a result's rows in one kernel.

use tilewright_core::annotation::TILING;
use tilewright_core::schedule::{BlockRv, Schedule};
use tilewright_macros::schedule_rule;

use crate::gpu::is_executable;
use crate::gpu::rows::{self, Values};
use crate::space::rule::{RuleExtension, RuleOutcome, RuleResult};
use crate::space::rules::block::block_of;

/// The threads that compute a row together.
const THREADS: [i64; 5] = [32, 64, 128, 256, 512];

/// Computes the rows of a block with all steps that serve it alone in one kernel, as a variant for each number of threads besides kernels
/// for each step. Blocks that are tiled are left alone.
#[schedule_rule(target = "gpu", after = "inline_into_copies", before = "cross_thread_reduction")]
pub fn rows_in_block(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    let found = block_of(schedule, block)?;
    if TILING.is_in(&found.annotations) {
        return schedule.unchanged();
    }
    let Some(values) = rows::longest_row(schedule, block)? else { return schedule.unchanged() };
    let mut variants = Vec::new();
    for threads in suitable(values) {
        // Values that threads would have to pass on cannot be in registers.
        for values in [Values::Registers, Values::Shared] {
            let mut variant = schedule.fork();
            let suits = rows::rows_in_block(&mut variant, block, threads, values).is_ok_and(|suits| suits);
            if suits && is_executable(&variant) {
                variants.push(variant);
                break;
            }
        }
    }
    if variants.is_empty() {
        return schedule.unchanged();
    }
    variants.push(schedule.fork());
    Ok(RuleOutcome::Variants(variants))
}

/// The numbers of threads that have neither too much nor nothing to do.
fn suitable(values: i64) -> impl Iterator<Item = i64> {
    let [first, .., last] = THREADS;
    let least = (values / rows::MAX_UNROLLED).min(last);
    let most = values.max(first);
    THREADS.into_iter().filter(move |threads| (least..=most).contains(threads))
}

//! Reductions by the threads of a block.

use tilewright_core::annotation::TILING;
use tilewright_core::schedule::{BlockRv, Schedule};
use tilewright_macros::schedule_rule;

use crate::gpu::in_block;
use crate::space::rule::{RuleExtension, RuleOutcome, RuleResult};
use crate::space::rules::block::{block_of, needs_multi_level_tiling};

/// The most threads that reduce together.
const THREADS: [i64; 4] = [32, 128, 256, 512];

/// Has the threads of a block reduce together, as a variant for each number of threads besides the plain reduction. Blocks that are
/// tiled are left alone.
#[schedule_rule(target = "gpu", after = "rows_in_block", before = "auto_bind")]
pub fn cross_thread_reduction(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    let found = block_of(schedule, block)?;
    if TILING.is_in(&found.annotations) || needs_multi_level_tiling(schedule.program(), &found) {
        return schedule.unchanged();
    }
    let mut variants = Vec::new();
    let mut tried = Vec::new();
    for most in THREADS {
        let Some(threads) = in_block::threads_for(&found, most) else { continue };
        if tried.contains(&threads) {
            continue;
        }
        tried.push(threads);
        let mut variant = schedule.fork();
        if in_block::reduce_in_block(&mut variant, block, threads).is_ok_and(|suits| suits) {
            variants.push(variant);
        }
    }
    if variants.is_empty() {
        return schedule.unchanged();
    }
    variants.push(schedule.fork());
    Ok(RuleOutcome::Variants(variants))
}

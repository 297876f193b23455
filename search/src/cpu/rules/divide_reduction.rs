//! Long reductions, divided among threads.

use tilewright_core::analysis::scope::producers;
use tilewright_core::annotation::{RANDOM_COMPUTE_PRODUCER, TILING};
use tilewright_core::program::Program;
use tilewright_core::schedule::{BlockRv, Schedule, ScheduleError};
use tilewright_core::stmt::{Block, IterKind};
use tilewright_macros::schedule_rule;

use crate::space::rule::{RuleExtension, RuleOutcome, RuleResult};
use crate::space::rules::add_rfactor::partition_loops;
use crate::space::rules::block::{block_of, domain_size, needs_multi_level_tiling, needs_rfactor};

/// The fewest elements of a reduction that is divided. One thread reduces this many in about the time that starting several takes.
const LEAST: i64 = 1 << 14;

/// The parts of a reduction for each thread, with their probabilities.
const PARTS: [(i64, f64); 3] = [(1, 0.5), (2, 0.25), (4, 0.25)];

/// Divides a long reduction to few results into a part for each thread, or a few. `add_rfactor` makes many short parts instead, whose sums
/// pass through memory and end in a sum over lanes each; a long part keeps its sums in registers.
#[schedule_rule(target = "cpu", after = "add_rfactor", before = "multi_level_tiling")]
pub fn divide_reduction(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    let found = block_of(schedule, block)?;
    let threads = i64::from(schedule.threads());
    if !is_long(schedule.program(), &found, threads) {
        return schedule.unchanged();
    }
    let mut divided = schedule.fork();
    divide(&mut divided, block, threads)?;
    Ok(RuleOutcome::Variants(vec![schedule.fork(), divided]))
}

/// Whether a reduction without data reuse is long enough for several threads, and has fewer results than there are threads.
fn is_long(program: &Program, block: &Block, threads: i64) -> bool {
    let is_factor = |block: &Block| RANDOM_COMPUTE_PRODUCER.is_in(&block.annotations);
    let is_free = !TILING.is_in(&block.annotations)
        && !is_factor(block)
        && !producers(program, block).into_iter().any(|producer| is_factor(producer));
    let sizes = (domain_size(block, IterKind::Spatial), domain_size(block, IterKind::Reduce));
    let (Some(results), Some(elements)) = sizes else { return false };
    is_free
        && needs_rfactor(program, block, threads)
        && !needs_multi_level_tiling(program, block)
        && results < threads
        && elements >= LEAST
}

fn divide(schedule: &mut Schedule, block: BlockRv, threads: i64) -> Result<(), ScheduleError> {
    let loops = schedule.get_loops(block)?;
    let (spatial, reduce) = partition_loops(schedule, block, &loops)?;
    schedule.reorder(&[spatial.as_slice(), reduce.as_slice()].concat())?;
    let fused = if reduce.len() > 1 { schedule.fuse(&reduce)? } else { reduce[0] };
    let (parts, weights): (Vec<i64>, Vec<f64>) =
        PARTS.into_iter().map(|(parts, weight)| (threads * parts, weight)).unzip();
    let parts = schedule.sample_categorical(&parts, &weights)?;
    let split = schedule.split(fused, &[Some(parts), None])?;
    schedule.rfactor(block, split[0], -1)?;
    Ok(())
}

//! Parallel reductions.

use tilewright_core::annotation::RANDOM_COMPUTE_PRODUCER;
use tilewright_core::schedule::{BlockRv, LoopRv, Schedule};
use tilewright_core::stmt::{IterKind, LoopKind};
use tilewright_core::visit::find_loop;
use tilewright_macros::schedule_rule;

use crate::space::rule::{RuleExtension, RuleOutcome, RuleResult};
use crate::space::rules::block::{block_of, needs_rfactor};
use crate::space::rules::tiles::{UsefulTiles, sample_tile};

/// The largest innermost part of a split reduction.
const MAX_INNERMOST: i64 = 64;

/// The smallest useful innermost part.
const LEAST_INNERMOST: i64 = 4;

/// The most useful parallel iterations per worker.
const JOBS_PER_WORKER: i64 = 16;

/// Splits a reduction in two and factors one part out: the outer part can then run in parallel, or the inner part in vector
/// lanes. Offers both variants besides the plain reduction.
#[schedule_rule(target = "any", after = "auto_inline", before = "multi_level_tiling")]
pub fn add_rfactor(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    let found = block_of(schedule, block)?;
    let max_parallel = i64::from(schedule.context().workers()) * JOBS_PER_WORKER;
    if !needs_rfactor(schedule.program(), &found, max_parallel) {
        return schedule.unchanged();
    }
    let mut variants = vec![schedule.fork()];
    for part in 0..2 {
        let mut variant = schedule.fork();
        if factor_part(&mut variant, block, part).is_ok() {
            variants.push(variant);
        }
    }
    Ok(RuleOutcome::Variants(variants))
}

/// Moves the reduction loops innermost, fuses them, splits the result in two, and factors one part.
fn factor_part(
    schedule: &mut Schedule,
    block: BlockRv,
    part: usize,
) -> Result<(), tilewright_core::schedule::ScheduleError> {
    let loops = schedule.get_loops(block)?;
    let (spatial, reduce) = partition_loops(schedule, block, &loops)?;
    schedule.reorder(&[spatial.as_slice(), reduce.as_slice()].concat())?;
    let fused = if reduce.len() > 1 { schedule.fuse(&reduce)? } else { reduce[0] };
    let lanes = schedule.context().target.cpu().map_or(1, |cpu| i64::from(cpu.lanes(4)));
    let useful = UsefulTiles {
        least: LEAST_INNERMOST,
        most: MAX_INNERMOST,
        most_dividing: MAX_INNERMOST,
        multiple: lanes,
    };
    let factors = sample_tile(schedule, fused, 2, useful)?;
    let parts = schedule.split(fused, &[Some(factors[0]), Some(factors[1])])?;
    let (partial, _) = schedule.rfactor(block, parts[part], -1)?;
    if part == 1 {
        // The new spatial loop goes innermost, where it can become vector lanes.
        schedule.reorder(&[parts[0], parts[1]])?;
    }
    schedule.annotate(partial, RANDOM_COMPUTE_PRODUCER, 1)
}

/// The loops of a block's spatial and of its reduction iterators, in order.
pub(crate) fn partition_loops(
    schedule: &Schedule,
    block: BlockRv,
    loops: &[LoopRv],
) -> Result<(Vec<LoopRv>, Vec<LoopRv>), tilewright_core::schedule::ScheduleError> {
    let found = block_of(schedule, block)?;
    let mut spatial = Vec::new();
    let mut reduce = Vec::new();
    for target in loops {
        let id = schedule.values().target_loop(*target)?;
        let Some(node) = find_loop(&schedule.program().body, id) else { continue };
        debug_assert_eq!(node.kind, LoopKind::Serial);
        let reduces =
            found.iters.iter().any(|iter| iter.kind == IterKind::Reduce && iter.binding.mentions(node.var));
        if reduces { reduce.push(*target) } else { spatial.push(*target) }
    }
    Ok((spatial, reduce))
}

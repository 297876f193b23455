//! Parallel reductions.

use std::cmp::Reverse;

use tilewright_core::analysis::block::{BufferAccess, loads};
use tilewright_core::annotation::RANDOM_COMPUTE_PRODUCER;
use tilewright_core::ids::VarId;
use tilewright_core::schedule::{BlockRv, LoopRv, Schedule, ScheduleError};
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
fn factor_part(schedule: &mut Schedule, block: BlockRv, part: usize) -> Result<(), ScheduleError> {
    let loops = schedule.get_loops(block)?;
    let (spatial, mut reduce) = partition_loops(schedule, block, &loops)?;
    order_as_in_memory(schedule, block, &mut reduce)?;
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

/// Sorts reduction loops by the distance of the elements that they step over, the farthest first, so that the fused loop runs through memory in
/// order: dimensions of a tensor may lie in memory in another order than in the definition. The first load that all of them move decides; without
/// one, the loops stay as they are.
fn order_as_in_memory(
    schedule: &Schedule,
    block: BlockRv,
    reduce: &mut Vec<LoopRv>,
) -> Result<(), ScheduleError> {
    let found = block_of(schedule, block)?;
    let program = schedule.program();
    let iterator = |target: &LoopRv| {
        let node = find_loop(&program.body, schedule.values().target_loop(*target).ok()?)?;
        let mut own = found.iters.iter().filter(|iter| iter.binding.as_var() == Some(node.var));
        own.next().map(|iter| iter.var)
    };
    let Some(iterators) = reduce.iter().map(iterator).collect::<Option<Vec<VarId>>>() else { return Ok(()) };
    let distances = |access: &BufferAccess<'_>| {
        let place = program.place(access.buffer, access.indices);
        let distance = |var: &VarId| place.linear_coefficient(*var).filter(|distance| *distance != 0);
        iterators.iter().map(distance).collect::<Option<Vec<i64>>>()
    };
    if let Some(distances) = loads(&found.body).iter().find_map(distances) {
        let mut loops: Vec<(i64, LoopRv)> = distances.into_iter().zip(reduce.iter().copied()).collect();
        loops.sort_by_key(|(distance, _)| Reverse(distance.abs()));
        *reduce = loops.into_iter().map(|(_, target)| target).collect();
    }
    Ok(())
}

/// The loops of a block's spatial and of its reduction iterators, in order.
pub(crate) fn partition_loops(
    schedule: &Schedule,
    block: BlockRv,
    loops: &[LoopRv],
) -> Result<(Vec<LoopRv>, Vec<LoopRv>), ScheduleError> {
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

#[cfg(test)]
mod tests {
    use tilewright_core::program::Program;
    use tilewright_core::target::{CpuTarget, Target};

    use super::*;

    #[test]
    fn the_fused_loop_runs_through_memory_in_order() {
        let program: Program = "kernel sum(in x: f32[6, 8, 32], out y: f32[]) {
  for c in 0..32 { for h in 0..6 { for w in 0..8 {
    block y(vc: reduce 32 = c, vh: reduce 6 = h, vw: reduce 8 = w) {
      init { y[] = 0.0 }
      y[] = y[] + x[vh, vw, vc]
    }
  } } }
}"
        .parse()
        .unwrap_or_else(|error| panic!("{error}"));
        let mut schedule = Schedule::new(program, Target::from(CpuTarget::generic()), 1);
        let block = schedule.get_block("y").expect("it is there");
        factor_part(&mut schedule, block, 1).expect("it can be factored");
        let trace = schedule.trace().to_string();
        // Rows, columns, channels.
        assert!(trace.contains("%1, %2, %3 = get_loops %0\nreorder [%2, %3, %1]\n"), "{trace}");
    }
}

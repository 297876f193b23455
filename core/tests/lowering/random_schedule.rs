//! Random schedules: primitives drawn blindly, of which those that refuse are left out.

use std::sync::Arc;

use tilewright_core::analysis::scope::blocks;
use tilewright_core::index::map::IndexMap;
use tilewright_core::program::{Program, Scope};
use tilewright_core::schedule::{BlockRv, LoopRv, Rng, Schedule, ScheduleError};
use tilewright_core::target::Target;

/// A schedule of up to `steps` random primitives.
pub(crate) fn random_schedule(program: Program, seed: u64, steps: usize) -> Schedule {
    let mut schedule = Schedule::new(program, Arc::new(Target::generic_cpu()), seed);
    let mut rng = Rng::stream(seed, 1);
    for _ in 0..steps {
        // A primitive that refuses leaves the schedule as it was.
        let _refused = step(&mut schedule, &mut rng);
    }
    // A loop that has got other statements since then cannot be lowered.
    if rng.below(3) == 0 {
        let _refused = stage_a_loop(&mut schedule, &mut rng);
    }
    schedule
}

fn pick<T: Clone>(rng: &mut Rng, choices: &[T]) -> Option<T> {
    (!choices.is_empty()).then(|| choices[rng.below(choices.len())].clone())
}

fn random_block(schedule: &mut Schedule, rng: &mut Rng) -> Result<BlockRv, ScheduleError> {
    let names: Vec<_> = blocks(&schedule.program().body).iter().map(|block| block.name.clone()).collect();
    let name = pick(rng, &names).expect("a program has blocks");
    schedule.get_block(&name)
}

fn step(s: &mut Schedule, rng: &mut Rng) -> Result<(), ScheduleError> {
    let block = random_block(s, rng)?;
    let loops = s.get_loops(block)?;
    let other = random_block(s, rng)?;
    let other_loops = s.get_loops(other)?;
    let chosen: Option<LoopRv> = pick(rng, &loops);
    let innermost = loops.last().copied();
    match (rng.below(25), chosen) {
        (0..=4, Some(chosen)) => {
            let factor = pick(rng, &[2, 3, 4, 8, 16]).expect("some factor");
            s.split(chosen, &[None, Some(factor)]).map(drop)
        }
        (5, Some(chosen)) => {
            let factors = [None, pick(rng, &[2, 3]), pick(rng, &[2, 4])];
            s.split(chosen, &factors).map(drop)
        }
        (6, Some(_)) if loops.len() > 1 => {
            let first = rng.below(loops.len() - 1);
            s.fuse(&loops[first..first + 2]).map(drop)
        }
        (7..=9, Some(_)) if loops.len() > 1 => {
            let mut order = loops.clone();
            for position in (1..order.len()).rev() {
                order.swap(position, rng.below(position + 1));
            }
            order.truncate(2 + rng.below(order.len() - 1));
            s.reorder(&order)
        }
        (10, Some(_)) if rng.below(2) == 0 => s.parallel(loops[0]),
        (10, Some(_)) => s.sink_loop(loops[rng.below(loops.len().min(2))]).map(drop),
        (11..=12, _) => innermost.map_or(Ok(()), |innermost| s.vectorize(innermost)),
        (13, Some(chosen)) => s.unroll(chosen),
        (14, _) => pick(rng, &other_loops).map_or(Ok(()), |target| s.compute_at(block, target)),
        (15, _) => pick(rng, &other_loops).map_or(Ok(()), |target| s.reverse_compute_at(block, target)),
        (16, _) if rng.below(2) == 0 => s.compute_inline(block),
        (16, _) => s.reverse_compute_inline(block),
        (17, _) => {
            let scope = pick(rng, &[Scope::Local, Scope::Global]).expect("some scope");
            s.cache_write(block, scope).map(drop)
        }
        (18, _) => s.cache_read(block, rng.below(2) as i64, Scope::Global).map(drop),
        (19, Some(chosen)) => s.decompose_reduction(block, chosen).map(drop),
        (20, Some(chosen)) => s.rfactor(block, chosen, rng.below(2) as i64).map(drop),
        (21, Some(chosen)) => s.annotate(chosen, "unroll_factor", pick(rng, &[2i64, 3, 4]).expect("some")),
        (22, _) => {
            let order = pick(rng, &[vec![1, 0], vec![0, 2, 1], vec![2, 0, 1]]).expect("some");
            s.transform_layout(block, "write", 0, IndexMap::permutation(&order).expect("a permutation"))
        }
        (23, _) => s.stream_writes(block, 0),
        (24, Some(chosen)) => match rng.below(6) as i64 {
            5 => s.prefetch_for_siblings(chosen),
            distance => s.prefetch(chosen, 1 + distance),
        },
        _ => Ok(()),
    }
}

/// Computes a producer, or a copy of what a block reads, in a loop of the block, and executes both in stages.
fn stage_a_loop(s: &mut Schedule, rng: &mut Rng) -> Result<(), ScheduleError> {
    let mut attempt = s.clone();
    let block = random_block(&mut attempt, rng)?;
    let loops = attempt.get_loops(block)?;
    let target = pick(rng, &loops).ok_or(ScheduleError::BadLoopList)?;
    let producers = attempt.get_producers(block)?;
    match pick(rng, &producers) {
        Some(producer) if rng.below(2) == 0 => attempt.compute_at(producer, target)?,
        _ => drop(attempt.read_at(target, block, rng.below(2) as i64, Scope::Local)?),
    }
    let order = if rng.below(2) == 0 { [0, 1] } else { [1, 0] };
    attempt.software_pipeline(target, &[0, 1 + rng.below(2) as i64], &order)?;
    *s = attempt;
    Ok(())
}

//! A schedule without a search: the first of a few ways for each block that the machine can execute.

use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::program::Program;
use tilewright_core::schedule::{BlockRv, Schedule, ScheduleError};
use tilewright_core::target::RunContext;

use super::features::extract;
use super::over_blocks::divide_among_blocks;
use super::postproc::verify::verify_limits;
use super::rows::{rows_in_registers, rows_in_shared_memory};
use super::{by_element, by_update, in_block, tiles, transposed};
use crate::space::rule::RuleOutcome;
use crate::space::rules::auto_inline::auto_inline;

/// Schedules the nest of a block; the answer is whether the way suits the block.
type Way = fn(&mut Schedule, BlockRv) -> Result<bool, ScheduleError>;

/// The ways, the best one first. One thread executes a block that none of them suits.
const WAYS: [Way; 5] = [
    by_update::one_thread_per_update,
    tiles::tile_products,
    in_block::reduce_as_usual,
    transposed::transpose_in_tiles,
    by_element::one_thread_per_element,
];

/// A schedule of a program on a GPU that is made at once: with whole rows in one kernel, and reductions divided among blocks of threads,
/// where the draft model expects more of that.
pub(crate) fn schedule_by_ways(program: &Program, context: &RunContext) -> Schedule {
    let inlined = inlined(program, context);
    let mut best = complete(inlined.clone());
    let mut best_score = score(&best);
    let mut divided = inlined.clone();
    for name in names(&inlined) {
        attempt(&mut divided, &name, divide_among_blocks);
    }
    let steps = |schedule: &Schedule| schedule.trace().steps().len();
    let is_divided = steps(&divided) > steps(&inlined);
    let starts = [Some(&inlined), is_divided.then_some(&divided)];
    for start in starts.into_iter().flatten() {
        let joined = joined(start);
        if steps(&joined) == steps(&inlined) {
            continue;
        }
        let other = complete(joined);
        let expected = score(&other);
        if expected > best_score {
            (best, best_score) = (other, expected);
        }
    }
    best
}

/// The program with its cheap blocks inlined.
pub(super) fn inlined(program: &Program, context: &RunContext) -> Schedule {
    let mut inlined = Schedule::new(program.clone(), context, 0);
    for name in names(&inlined) {
        inline(&mut inlined, &name);
    }
    inlined
}

/// The schedule with the steps of rows in one kernel, where they can be.
fn joined(schedule: &Schedule) -> Schedule {
    joined_with(schedule, &names(schedule))
}

/// As [`joined`], where the blocks with some names may be the last steps.
pub(super) fn joined_with(schedule: &Schedule, names: &[String]) -> Schedule {
    let mut joined = schedule.clone();
    // The last step takes those before it along.
    for name in names.iter().rev() {
        let _ = attempt(&mut joined, name, rows_in_registers)
            || attempt(&mut joined, name, rows_in_shared_memory);
    }
    joined
}

/// Schedules each block that is left in the first way that suits it.
fn complete(schedule: Schedule) -> Schedule {
    let names = names(&schedule);
    complete_with(schedule, &names)
}

/// As [`complete`], for the blocks with some names.
pub(super) fn complete_with(mut schedule: Schedule, names: &[String]) -> Schedule {
    for name in names {
        for way in WAYS {
            if attempt(&mut schedule, name, way) {
                break;
            }
        }
    }
    schedule
}

/// Schedules the nest of a block in a way, where that suits the block and gives what the machine can execute.
fn attempt(schedule: &mut Schedule, name: &str, way: Way) -> bool {
    let mut attempt = schedule.clone();
    let outcome = attempt.get_block(name).and_then(|block| way(&mut attempt, block));
    let suits = outcome.is_ok_and(|suits| suits) && is_executable(&attempt);
    if suits {
        *schedule = attempt;
    }
    suits
}

/// The draft model's expectation.
pub(super) fn score(schedule: &Schedule) -> f32 {
    extract(schedule.program(), schedule.context()).map_or(f32::MIN, |features| features.prior())
}

/// The names of the blocks, in order.
pub(super) fn names(schedule: &Schedule) -> Vec<String> {
    tilewright_core::analysis::scope::blocks(&schedule.program().body)
        .into_iter()
        .map(|block| block.name.to_string())
        .collect()
}

/// Inlines a block into its consumers where the rule for all devices does.
fn inline(schedule: &mut Schedule, name: &str) {
    let mut attempt = schedule.clone();
    let Ok(block) = attempt.get_block(name) else { return };
    match auto_inline(&mut attempt, block) {
        Ok(RuleOutcome::Changed) => *schedule = attempt,
        Ok(RuleOutcome::Variants(variants)) => {
            if let Some(first) = variants.into_iter().next() {
                *schedule = first;
            }
        }
        Ok(RuleOutcome::Unchanged) | Err(_) => {}
    }
}

/// Whether a schedule can be lowered, and its blocks of threads fit the machine.
pub(crate) fn is_executable(schedule: &Schedule) -> bool {
    fits(schedule) && lower(schedule.program(), &LowerOptions::of(schedule.target())).is_ok()
}

fn fits(schedule: &Schedule) -> bool {
    verify_limits(schedule.program(), schedule.context()).is_ok()
}

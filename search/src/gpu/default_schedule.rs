//! A schedule without a search: the first of a few ways for each block that the machine can execute.

use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::program::Program;
use tilewright_core::schedule::{BlockRv, Schedule, ScheduleError};
use tilewright_core::target::RunContext;

use super::{by_element, in_block, tiles};
use crate::space::rule::RuleOutcome;
use crate::space::rules::auto_inline::auto_inline;

/// Schedules the nest of a block; the answer is whether the way suits the block.
type Way = fn(&mut Schedule, BlockRv) -> Result<bool, ScheduleError>;

/// The ways, the best one first. One thread executes a block that none of them suits.
const WAYS: [Way; 3] = [tiles::tile_products, in_block::reduce_as_usual, by_element::one_thread_per_element];

/// A schedule of a program on a GPU that is made at once.
pub(crate) fn schedule_by_ways(program: &Program, context: &RunContext) -> Schedule {
    let mut schedule = Schedule::new(program.clone(), context, 0);
    for name in names(&schedule) {
        inline(&mut schedule, &name);
    }
    for name in names(&schedule) {
        for way in WAYS {
            let mut attempt = schedule.clone();
            let outcome = attempt.get_block(&name).and_then(|block| way(&mut attempt, block));
            if outcome.is_ok_and(|suits| suits) && is_executable(&attempt) {
                schedule = attempt;
                break;
            }
        }
    }
    schedule
}

fn names(schedule: &Schedule) -> Vec<String> {
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

/// Whether a schedule can be lowered.
pub(crate) fn is_executable(schedule: &Schedule) -> bool {
    lower(schedule.program(), &LowerOptions::of(schedule.target())).is_ok()
}

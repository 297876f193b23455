//! Transfers traces of one kernel to a variant of it.
//!
//! A trace for the same kernel at another shape needs no transfer: replaying it repairs its tiles. A variant, such
//! as one with an epilogue or another batch, has other blocks and loops. The steps of the trace, the *anchor*, that apply are
//! repeated. Blocks that the variant adds are fused into their producers where that is possible, and are left to the rules
//! where it is not (MetaSchedule's `ScheduleUsingAnchorTrace`, which only inlines them).

use tilewright_core::analysis::scope::blocks;
use tilewright_core::program::Program;
use tilewright_core::schedule::{Decision, Instruction, Schedule, Trace};
use tilewright_core::stmt::Symbol;
use tilewright_core::target::RunContext;

use crate::space::complete;
use crate::space::spec::SearchSpec;

/// The most traces that one anchor gives.
const VARIANTS: usize = 4;

/// The least share of an anchor's decisions that must apply; with fewer, the programs are too different.
const LEAST_SHARE: f64 = 0.5;

/// The traces that a trace of another program gives for this one; none when too few of its decisions apply.
pub fn anchored(
    anchor: &Trace,
    program: &Program,
    context: impl Into<RunContext>,
    spec: &SearchSpec,
    seed: u64,
) -> Vec<Trace> {
    let mut schedule = Schedule::new(program.clone(), context, seed);
    let is_repeated = anchor.replay_applicable(&mut schedule);
    let steps = || anchor.steps().iter().zip(&is_repeated);
    // Categorical choices refer to no loop, and always apply.
    let is_about_something = |decision: &Decision| !matches!(decision, Decision::Choice(_));
    let decided = steps().filter(|(step, _)| step.decision.as_ref().is_some_and(is_about_something));
    let repeated = decided.clone().filter(|(_, is_repeated)| **is_repeated).count();
    if repeated == 0 || (repeated as f64) < LEAST_SHARE * decided.count() as f64 {
        return Vec::new();
    }
    let touched: Vec<&Symbol> = steps()
        .filter(|(_, is_repeated)| **is_repeated)
        .filter_map(|(step, _)| match &step.instruction {
            Instruction::GetBlock(found) => Some(&found.name),
            _ => None,
        })
        .collect();
    let rest: Vec<Symbol> = blocks(&program.body)
        .iter()
        .map(|block| block.name.clone())
        .filter(|name| !touched.contains(&name))
        .collect();
    for name in &rest {
        fuse(&mut schedule, name);
    }
    // Where the anchor's epilogue had the annotations of a nest, the block before it needs its own.
    let open: Vec<Symbol> = touched
        .iter()
        .filter(|name| ends_without_annotations(&schedule, name, spec))
        .map(|name| (*name).clone())
        .collect();
    let completed = complete(schedule, &spec.rules, &[rest, open].concat());
    completed.into_iter().take(VARIANTS).map(|schedule| schedule.into_parts().1.simplified()).collect()
}

/// Whether a block is the last of its nest, and no annotation says how the nest runs.
fn ends_without_annotations(schedule: &Schedule, name: &str, spec: &SearchSpec) -> bool {
    let mut look = schedule.clone();
    look.get_block(name).and_then(|block| (spec.device.lacks_annotations)(&look, block)).unwrap_or(false)
}

/// Fuses an element-wise block into its producer, where that is possible.
fn fuse(schedule: &mut Schedule, name: &str) {
    let mut attempt = schedule.clone();
    let fused = attempt.get_block(name).and_then(|block| attempt.reverse_compute_inline(block));
    if fused.is_ok() {
        *schedule = attempt;
    }
}

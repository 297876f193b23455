//! Draws a compute location, or a whole tile, afresh.

use tilewright_core::schedule::{Decision, Instruction, Rng, Step};

use crate::mutate::{Change, Mutator};
use crate::seed::max_innermost;

/// See the module.
pub(super) const MUTATOR: Mutator = Mutator { name: "resample", weight: 0.05, mutate, applies };

fn applies(step: &Step, _: &Decision) -> bool {
    matches!(step.instruction, Instruction::SampleComputeLocation(_)) || max_innermost(step).is_some()
}

fn mutate(_: &Step, _: &Decision, _: &mut Rng) -> Option<Change> {
    Some(Change::Resample)
}

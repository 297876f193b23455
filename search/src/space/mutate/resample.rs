//! Draws a compute location, or a whole tile, afresh.

use tilewright_core::schedule::{Decision, Instruction, Rng, Step};

use crate::space::mutate::tile_size::max_innermost;
use crate::space::mutate::{Change, Mutator};

/// See the module.
pub(super) const MUTATOR: Mutator = Mutator::built_in("resample", 0.05, applies, mutate);

fn applies(step: &Step, _: &Decision) -> bool {
    matches!(step.instruction, Instruction::SampleComputeLocation(_)) || max_innermost(step).is_some()
}

fn mutate(_: &Step, _: &Decision, _: &mut Rng) -> Option<Change> {
    Some(Change::Resample)
}

//! Draws another candidate of a categorical choice.

use tilewright_core::schedule::{Decision, Instruction, Rng, Step};

use crate::space::mutate::{Change, Mutator};

/// See the module.
pub(super) const MUTATOR: Mutator = Mutator::built_in("categorical", 0.15, applies, mutate);

fn applies(step: &Step, _: &Decision) -> bool {
    matches!(&step.instruction, Instruction::SampleCategorical(sample) if sample.candidates.len() > 1)
}

/// Draws one of the other candidates, by their probabilities.
fn mutate(step: &Step, decision: &Decision, rng: &mut Rng) -> Option<Change> {
    let (Instruction::SampleCategorical(sample), Decision::Choice(current)) = (&step.instruction, decision)
    else {
        return None;
    };
    let mut weights = sample.probabilities.clone();
    *weights.get_mut(*current)? = 0.0;
    rng.weighted(&weights).map(|choice| Change::Decide(Decision::Choice(choice)))
}

//! Takes the next smaller or larger one of some numbers.

use tilewright_core::schedule::{Decision, Instruction, Rng, Step};

use crate::space::mutate::{Change, Mutator};

/// See the module.
pub(super) const MUTATOR: Mutator = Mutator::built_in("next_choice", 0.2, applies, mutate);

/// A choice among rising numbers: copies of a statement, elements of a copy, stages of a pipeline, powers of two of a tile.
fn applies(step: &Step, _: &Decision) -> bool {
    matches!(&step.instruction, Instruction::SampleCategorical(sample)
        if sample.candidates.len() > 1 && sample.candidates.is_sorted())
}

fn mutate(step: &Step, decision: &Decision, rng: &mut Rng) -> Option<Change> {
    let (Instruction::SampleCategorical(sample), Decision::Choice(current)) = (&step.instruction, decision)
    else {
        return None;
    };
    let next = if rng.below(2) == 0 { current.checked_sub(1)? } else { current + 1 };
    (next < sample.candidates.len()).then_some(Change::Decide(Decision::Choice(next)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_core::schedule::prim::SampleCategorical;

    fn step(candidates: &[i64], choice: usize) -> Step {
        let probabilities = vec![1.0; candidates.len()];
        let sample = SampleCategorical { candidates: candidates.to_vec(), probabilities };
        let decision = Some(Decision::Choice(choice));
        Step { instruction: sample.into(), first_output: 1, outputs: 1, decision }
    }

    #[test]
    fn choices_are_neighbours() {
        let mut rng = Rng::new(4);
        let mut seen = std::collections::BTreeSet::new();
        for (candidates, choice) in [(&[1_i64, 2, 4, 8][..], 1), (&[64, 256, 1024], 0), (&[1, 2], 1)] {
            let step = step(candidates, choice);
            for _ in 0..50 {
                if let Some(Change::Decide(Decision::Choice(next))) =
                    mutate(&step, step.decision.as_ref().unwrap(), &mut rng)
                {
                    assert_eq!(next.abs_diff(choice), 1);
                    seen.insert((candidates.len(), next));
                }
            }
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [(2, 0), (3, 1), (4, 0), (4, 2)]);
    }

    #[test]
    fn numbers_in_no_order_have_no_neighbours() {
        let step = step(&[3, 1, 2], 0);
        assert!(!applies(&step, step.decision.as_ref().unwrap()));
    }
}

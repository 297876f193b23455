//! Mutators: small steps from one point of a design space to a neighbour.
//!
//! A mutator changes one decision of a trace. Whether the result is legal is found out by replaying it.

mod categorical;
mod resample;
mod tile_size;

use tilewright_core::schedule::{Decision, Rng, Step, Trace};

/// A way to change a trace.
#[derive(Clone, Copy, Debug)]
pub struct Mutator {
    /// The name, for statistics.
    pub name: &'static str,
    /// How often it is used, relative to the others.
    pub weight: f64,
    /// The new decision for a step, or `None` when the mutator does not apply to it.
    mutate: fn(&Step, &Decision, &mut Rng) -> Option<Change>,
    /// Whether the mutator applies to a step at all.
    applies: fn(&Step, &Decision) -> bool,
}

/// What becomes of the decision of one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is replaced.
    Decide(Decision),
    /// It is drawn afresh on replay.
    Resample,
}

/// One changed decision of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutation {
    /// The number of the step.
    pub step: usize,
    /// What becomes of its decision.
    pub change: Change,
}

/// The mutators for a CPU, with the weights of MetaSchedule's set.
pub const CPU: &[Mutator] = &[tile_size::MUTATOR, categorical::MUTATOR, resample::MUTATOR];

/// Draws a mutation of a trace; `None` when no mutator applies to any step.
pub fn draw(trace: &Trace, mutators: &[Mutator], rng: &mut Rng) -> Option<Mutation> {
    let steps_of = |mutator: &Mutator| -> Vec<usize> {
        let is_open = |(number, decision): (usize, &Decision)| {
            (mutator.applies)(&trace.steps()[number], decision).then_some(number)
        };
        trace.decisions().filter_map(is_open).collect()
    };
    let places: Vec<Vec<usize>> = mutators.iter().map(steps_of).collect();
    let weights: Vec<f64> = mutators
        .iter()
        .zip(&places)
        .map(|(mutator, steps)| if steps.is_empty() { 0.0 } else { mutator.weight })
        .collect();
    let chosen = rng.weighted(&weights)?;
    let step = places[chosen][rng.below(places[chosen].len())];
    let recorded = &trace.steps()[step];
    let change = (mutators[chosen].mutate)(recorded, recorded.decision.as_ref()?, rng)?;
    Some(Mutation { step, change })
}

//! Mutators: small steps from one point of a design space to a neighbour.
//!
//! A mutator changes one decision of a trace. Replaying the trace shows whether the result is legal. The built-in mutators serve every
//! device. Users' mutators are made with [`Mutator::new`] and put among the built-in ones:
//!
//! ```
//! use tilewright_core::schedule::{Decision, Instruction};
//! use tilewright_core::target::TargetKind;
//! use tilewright_search::mutate::{Change, Mutator, Mutators};
//!
//! /// Takes the next candidate of a categorical choice.
//! let next = Mutator::new(
//!     "next_choice",
//!     0.1,
//!     |step, _| matches!(step.instruction, Instruction::SampleCategorical(_)),
//!     |step, decision, _| match (&step.instruction, decision) {
//!         (Instruction::SampleCategorical(sample), Decision::Choice(choice)) => {
//!             Some(Change::Decide(Decision::Choice((choice + 1) % sample.candidates.len())))
//!         }
//!         _ => None,
//!     },
//! );
//! let mutators = Mutators::built_in(TargetKind::Cpu).instead_of("categorical", next)?;
//! assert_eq!(mutators.names(), ["tile_size", "next_choice", "resample"]);
//! # Ok::<(), tilewright_search::chain::ChainError>(())
//! ```

mod categorical;
mod resample;
pub(crate) mod tile_size;

use std::panic::{AssertUnwindSafe, catch_unwind};

use tilewright_core::schedule::{Decision, Rng, Step, Trace};

use crate::space::chain::{Chain, Named};

/// Whether a mutator applies to a step, which has a decision.
pub type Applies = fn(&Step, &Decision) -> bool;

/// The change of a step's decision; `None` when no other decision is possible.
pub type Mutate = fn(&Step, &Decision, &mut Rng) -> Option<Change>;

/// A way to change a trace.
#[derive(Clone, Copy, Debug)]
pub struct Mutator {
    name: &'static str,
    weight: f64,
    applies: Applies,
    mutate: Mutate,
    is_built_in: bool,
}

impl Mutator {
    /// A mutator. `weight` is its probability relative to the other mutators, a finite number above 0; a mutator with another
    /// weight is never used. A mutator that panics changes nothing.
    pub const fn new(name: &'static str, weight: f64, applies: Applies, mutate: Mutate) -> Self {
        Mutator { name, weight, applies, mutate, is_built_in: false }
    }

    pub(crate) const fn built_in(name: &'static str, weight: f64, applies: Applies, mutate: Mutate) -> Self {
        Mutator { name, weight, applies, mutate, is_built_in: true }
    }

    /// Its probability, relative to the other mutators.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    fn applies(&self, step: &Step, decision: &Decision) -> bool {
        match self.is_built_in {
            true => (self.applies)(step, decision),
            false => catch_unwind(|| (self.applies)(step, decision)).unwrap_or(false),
        }
    }

    fn mutate(&self, step: &Step, decision: &Decision, rng: &mut Rng) -> Option<Change> {
        match self.is_built_in {
            true => (self.mutate)(step, decision, rng),
            false => catch_unwind(AssertUnwindSafe(|| (self.mutate)(step, decision, rng))).ok().flatten(),
        }
    }
}

impl Named for Mutator {
    const KIND: &'static str = "mutator";

    fn name(&self) -> &'static str {
        self.name
    }
}

/// Mutators to draw from.
pub type Mutators = Chain<Mutator>;

/// The built-in mutators with the weights of MetaSchedule's set for CPUs. They change decisions that are not bound to a device.
pub(crate) fn all() -> Mutators {
    vec![tile_size::MUTATOR, categorical::MUTATOR, resample::MUTATOR].into()
}

/// The change of one decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is replaced.
    Decide(Decision),
    /// The replay draws it afresh.
    Resample,
}

/// One changed decision of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutation {
    /// The number of the step.
    pub step: usize,
    /// The change of its decision.
    pub change: Change,
}

/// Draws a mutation of a trace; `None` when no mutator applies to any step.
pub fn draw(trace: &Trace, mutators: &Mutators, rng: &mut Rng) -> Option<Mutation> {
    let steps_of = |mutator: &Mutator| -> Vec<usize> {
        let is_open = |(number, decision): (usize, &Decision)| {
            mutator.applies(&trace.steps()[number], decision).then_some(number)
        };
        trace.decisions().filter_map(is_open).collect()
    };
    let mutators = mutators.elements();
    let places: Vec<Vec<usize>> = mutators.iter().map(steps_of).collect();
    let weights: Vec<f64> = mutators
        .iter()
        .zip(&places)
        .map(
            |(mutator, steps)| {
                if steps.is_empty() || !mutator.weight.is_finite() { 0.0 } else { mutator.weight }
            },
        )
        .collect();
    let chosen = rng.weighted(&weights)?;
    let step = places[chosen][rng.below(places[chosen].len())];
    let recorded = &trace.steps()[step];
    let change = mutators[chosen].mutate(recorded, recorded.decision.as_ref()?, rng)?;
    Some(Mutation { step, change })
}

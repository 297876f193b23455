//! What a search space is made of: rules, mutators and postprocessors, each of which users can exchange.

use tilewright_core::target::TargetKind;

use crate::mutate::Mutators;
use crate::postproc::Postprocessors;
use crate::rule::{RuleSet, RuleSetError};

/// What spans a search space, moves in it, and makes its points fit to be compiled.
#[derive(Clone, Debug)]
pub struct Composition {
    /// What spans the space.
    pub rules: RuleSet,
    /// What moves in it.
    pub mutators: Mutators,
    /// What makes its points fit to be compiled.
    pub postprocessors: Postprocessors,
}

impl Composition {
    /// Given rules, with the built-in mutators and postprocessors for a kind of target.
    pub fn new(kind: TargetKind, rules: RuleSet) -> Self {
        let (mutators, postprocessors) = (Mutators::built_in(kind), Postprocessors::built_in(kind));
        Composition { rules, mutators, postprocessors }
    }

    /// What is built in for a kind of target, and nothing else.
    ///
    /// # Errors
    /// As [`RuleSet::built_in`].
    pub fn built_in(kind: TargetKind) -> Result<Self, RuleSetError> {
        RuleSet::built_in(kind).map(|rules| Composition::new(kind, rules))
    }
}

//! The built-in rules, mutators, postprocessors and functions of each kind of device: the one table of devices.

use tilewright_core::target::TargetKind;

use crate::cpu;
use crate::space::mutate::{self, Mutators};
use crate::space::postproc::Postprocessors;
use crate::space::rule::{RuleSet, RuleSetError};
use crate::space::rules;
use crate::space::spec::{DeviceFunctions, SearchSpec, SpecError};

impl RuleSet {
    /// The built-in rules for a kind of target: those of the device, and those of every device.
    ///
    /// # Errors
    /// As [`RuleSet::registered`].
    pub fn built_in(kind: TargetKind) -> Result<Self, RuleSetError> {
        Self::of(rules::all().into_iter().chain(cpu::rules::all()), kind)
    }
}

impl Mutators {
    /// The built-in mutators for a kind of target.
    pub fn built_in(kind: TargetKind) -> Self {
        match kind {
            TargetKind::Cpu | TargetKind::Gpu => mutate::all(),
        }
    }
}

impl Postprocessors {
    /// The built-in postprocessors for a kind of target.
    pub fn built_in(kind: TargetKind) -> Self {
        match kind {
            TargetKind::Cpu => cpu::postproc::all(),
            TargetKind::Gpu => Self::new(),
        }
    }
}

impl SearchSpec {
    /// Some rules, with the built-in mutators, postprocessors and functions for a kind of target.
    ///
    /// # Errors
    /// When nothing is built in that searches schedules for such a target.
    pub fn new(kind: TargetKind, rules: RuleSet) -> Result<Self, SpecError> {
        Ok(SearchSpec {
            rules,
            mutators: Mutators::built_in(kind),
            postprocessors: Postprocessors::built_in(kind),
            device: DeviceFunctions::built_in(kind)?,
        })
    }

    /// The built-in search for a kind of target, without the rules of other crates.
    ///
    /// # Errors
    /// As [`SearchSpec::new`] and [`RuleSet::built_in`].
    pub fn built_in(kind: TargetKind) -> Result<Self, SpecError> {
        Self::new(kind, RuleSet::built_in(kind)?)
    }
}

impl DeviceFunctions {
    /// The functions of a kind of device.
    ///
    /// # Errors
    /// When there are none.
    pub fn built_in(kind: TargetKind) -> Result<Self, SpecError> {
        match kind {
            TargetKind::Cpu => Ok(cpu::FUNCTIONS),
            TargetKind::Gpu => Err(SpecError::Unsupported(kind)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_every_device_serve_a_gpu_and_others_do_not() {
        let names = RuleSet::built_in(TargetKind::Gpu).expect("the rules are in order").names();
        assert_eq!(names, ["custom_rule", "inline_constant_scalars", "auto_inline", "add_rfactor"]);
    }

    #[test]
    fn a_device_without_a_search_is_named() {
        let error = SearchSpec::built_in(TargetKind::Gpu).expect_err("there is no such search").to_string();
        assert!(error.contains("targets of the kind `gpu`"), "{error}");
    }
}

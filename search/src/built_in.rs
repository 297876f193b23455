//! The built-in rules, mutators, postprocessors and functions of each kind of device: the one table of devices.

use tilewright_core::target::TargetKind;

use crate::cpu;
use crate::gpu;
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
        Self::of(rules::all().into_iter().chain(cpu::rules::all()).chain(gpu::rules::all()), kind)
    }
}

impl Mutators {
    /// The built-in mutators for a kind of target.
    pub fn built_in(kind: TargetKind) -> Self {
        match kind {
            TargetKind::Cpu => mutate::all(),
            TargetKind::Gpu => gpu::mutate::all(),
        }
    }
}

impl Postprocessors {
    /// The built-in postprocessors for a kind of target.
    pub fn built_in(kind: TargetKind) -> Self {
        match kind {
            TargetKind::Cpu => cpu::postproc::all(),
            TargetKind::Gpu => gpu::postproc::all(),
        }
    }
}

impl SearchSpec {
    /// Some rules, with the built-in mutators, postprocessors and functions for a kind of target.
    pub fn new(kind: TargetKind, rules: RuleSet) -> Self {
        SearchSpec {
            rules,
            mutators: Mutators::built_in(kind),
            postprocessors: Postprocessors::built_in(kind),
            device: DeviceFunctions::built_in(kind),
        }
    }

    /// The built-in search for a kind of target, without the rules of other crates.
    ///
    /// # Errors
    /// As [`RuleSet::built_in`].
    pub fn built_in(kind: TargetKind) -> Result<Self, SpecError> {
        Ok(Self::new(kind, RuleSet::built_in(kind)?))
    }
}

impl DeviceFunctions {
    /// The functions of a kind of device.
    pub fn built_in(kind: TargetKind) -> Self {
        match kind {
            TargetKind::Cpu => cpu::FUNCTIONS,
            TargetKind::Gpu => gpu::FUNCTIONS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_device_has_the_rules_of_every_device_and_its_own() {
        let names = RuleSet::built_in(TargetKind::Gpu).expect("the rules are in order").names();
        let expected = [
            "custom_rule",
            "inline_constant_scalars",
            "auto_inline",
            "add_rfactor",
            "tensor_core_tiling",
            "multi_level_thread_tiling",
            "pipeline_copies",
            "inline_into_copies",
            "rows_in_block",
            "cross_thread_reduction",
            "atomic_updates",
            "tiles_across",
            "auto_bind",
        ];
        assert_eq!(names, expected);
        let of_cpu = RuleSet::built_in(TargetKind::Cpu).expect("the rules are in order").names();
        assert!(!of_cpu.contains(&"auto_bind"), "{of_cpu:?}");
    }

    #[test]
    fn each_device_has_the_mutators_of_every_device_and_its_own() {
        let of_every = Mutators::built_in(TargetKind::Cpu).names();
        let of_gpu = Mutators::built_in(TargetKind::Gpu).names();
        assert!(!of_every.is_empty() && of_gpu.starts_with(&of_every), "{of_gpu:?}");
        assert_eq!(of_gpu[of_every.len()..], ["threads", "next_choice"]);
    }

    #[test]
    fn every_device_has_a_search() {
        for kind in TargetKind::ALL {
            SearchSpec::built_in(kind).expect("there is a search");
        }
    }
}

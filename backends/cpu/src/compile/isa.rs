//! The machine as Cranelift and code generation see it.

use cranelift_codegen::settings::{self, Configurable};
use tilewright_core::device::CompileError;

use super::{Compiler, failed};
use crate::codegen::MachineFacts;
use crate::machine::{Feature, Machine};
use crate::simd;

/// Where code is going to lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkMode {
    /// In this process, at an address that is known when the code is linked.
    InProcess,
    /// In an object file that a linker may load anywhere.
    Object,
}

impl Compiler {
    /// A compiler for a machine.
    ///
    /// # Errors
    /// When Cranelift has no code generator for the machine.
    pub(super) fn new_for(machine: &Machine, mode: LinkMode) -> Result<Self, CompileError> {
        if machine.architecture == "x86_64" && !machine.features.contains(Feature::Sse41) {
            return Err(CompileError::Unsupported {
                target: "CPU",
                what: "for x86-64 without SSE4.1".into(),
            });
        }
        let mut builder = cranelift_native::builder_with_options(false).map_err(failed)?;
        for feature in machine.features.iter() {
            for flag in cranelift_flags(feature) {
                builder.enable(flag).map_err(failed)?;
            }
        }
        let isa = builder.finish(flags(mode)?).map_err(failed)?;
        let facts = MachineFacts {
            call_conv: isa.default_call_conv(),
            frontend: isa.frontend_config(),
            folds_unaligned_loads: machine.architecture != "x86_64"
                || machine.features.contains(Feature::Avx),
            leaves: simd::VectorExtension::of(machine),
            features: machine.features,
        };
        Ok(Compiler { isa, facts })
    }
}

/// Cranelift's settings.
fn flags(mode: LinkMode) -> Result<settings::Flags, CompileError> {
    let mut flags = settings::builder();
    let verifier = if cfg!(debug_assertions) { "true" } else { "false" };
    let is_pic = if mode == LinkMode::Object { "true" } else { "false" };
    for (name, value) in [
        // The optimiser moves the instructions of unrolled kernels so far apart that they spill.
        ("opt_level", "none"),
        // Allocation in a single pass takes hardly less time for kernels, and they run at a third of the speed.
        ("regalloc_algorithm", "backtracking"),
        ("enable_verifier", verifier),
        ("is_pic", is_pic),
        ("use_colocated_libcalls", "false"),
        ("unwind_info", "false"),
        ("enable_probestack", "true"),
        ("probestack_strategy", "inline"),
        ("log2_min_function_alignment", "6"),
    ] {
        flags.set(name, value).map_err(failed)?;
    }
    Ok(settings::Flags::new(flags))
}

/// Cranelift's names for a feature.
fn cranelift_flags(feature: Feature) -> &'static [&'static str] {
    match feature {
        Feature::Sse41 => &["has_sse3", "has_ssse3", "has_sse41", "has_cmpxchg16b"],
        Feature::Sse42 => &["has_sse42"],
        Feature::Popcnt => &["has_popcnt"],
        Feature::Avx => &["has_avx"],
        Feature::Avx2 => &["has_avx2"],
        Feature::Fma => &["has_fma"],
        Feature::Bmi1 => &["has_bmi1"],
        Feature::Bmi2 => &["has_bmi2"],
        Feature::Lzcnt => &["has_lzcnt"],
        Feature::Avx512f => &["has_avx512f"],
        Feature::Avx512dq => &["has_avx512dq"],
        Feature::Avx512vl => &["has_avx512vl"],
        _ => &[],
    }
}

//! The backend: the running machine, and the compiler for it.

use std::sync::Arc;

use tilewright_core::program::Program;
use tilewright_core::target::{Backend, BackendError, CpuTarget, Executable, Target};

use super::compile::Compiler;
use super::machine::{FeatureOverrideError, Machine};
use super::simd;

/// The width of Cranelift's vectors in bits, for code that is not in [leaves](simd).
const NARROW_BITS: u32 = 128;

/// The CPU backend.
pub struct CpuBackend {
    target: Target,
    compiler: Result<Arc<Compiler>, BackendError>,
}

impl CpuBackend {
    /// The backend for the running machine.
    ///
    /// # Errors
    /// When the environment variable that takes features away is malformed.
    pub fn host() -> Result<Self, FeatureOverrideError> {
        Ok(Self::for_machine(Machine::host()?))
    }

    /// The backend for the running machine without the features in `removals`, a list such as `-fma,-avx`.
    ///
    /// # Errors
    /// When an entry is unknown or lacks its minus sign.
    pub fn without_features(removals: &str) -> Result<Self, FeatureOverrideError> {
        let machine = Machine::host()?.clone().without_features(removals)?;
        Ok(Self::for_machine(&machine))
    }

    /// The code runs on this machine, so `machine` must offer no more than it does.
    fn for_machine(machine: &Machine) -> Self {
        let compiler = Compiler::new(machine).map(Arc::new);
        let extension = simd::VectorExtension::of(machine);
        let vector_bits = extension.map_or(NARROW_BITS, |extension| 8 * extension.bytes());
        let cpu = CpuTarget { intrinsics: simd::intrinsics(machine), ..machine.target(vector_bits) };
        CpuBackend { target: cpu.into(), compiler }
    }
}

impl Backend for CpuBackend {
    fn target(&self) -> &Target {
        &self.target
    }

    fn compile(&self, programs: &[&Program]) -> Vec<Result<Box<dyn Executable>, BackendError>> {
        match &self.compiler {
            Ok(compiler) => compiler.compile(programs),
            Err(error) => programs.iter().map(|_| Err(error.clone())).collect(),
        }
    }
}

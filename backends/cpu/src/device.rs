//! The CPU as a device.

use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use tilewright_core::device::{
    BufferArgument, CompileError, Device, DeviceBuffer, DeviceError, DeviceSlice, DeviceSliceMut, Executable,
};
use tilewright_core::dtype::DType;
use tilewright_core::program::Program;
use tilewright_core::target::{CpuTarget, RunOptions, Target};

use super::compile::Compiler;
use super::evict::evict;
use super::machine::{FeatureOverrideError, Machine};
use super::memory::{self, HostMemory};
use super::peak::fma_peak;
use super::simd;

/// The width of Cranelift's vectors in bits, for code that is not in [leaves](simd).
const NARROW_BITS: u32 = 128;

/// The processor that this program runs on.
pub struct CpuDevice {
    label: String,
    vector_bits: u32,
    target: Target,
    compiler: Result<Arc<Compiler>, CompileError>,
}

impl CpuDevice {
    /// The processor as it is.
    ///
    /// # Errors
    /// When the environment variable that takes features away is malformed.
    pub fn host() -> Result<Self, FeatureOverrideError> {
        Ok(Self::for_machine(Machine::host()?))
    }

    /// The processor without the features in `removals`, a list such as `-fma,-avx`.
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
        CpuDevice { label: machine.brand.clone(), vector_bits, target: cpu.into(), compiler }
    }
}

impl Device for CpuDevice {
    fn label(&self) -> &str {
        &self.label
    }

    fn target(&self) -> &Target {
        &self.target
    }

    fn compile(&self, programs: &[&Program]) -> Vec<Result<Box<dyn Executable>, CompileError>> {
        match &self.compiler {
            Ok(compiler) => compiler.compile(programs),
            Err(error) => programs.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    fn list(&self, program: &Program) -> Result<String, CompileError> {
        self.compiler.as_ref().map_err(Clone::clone)?.list(program)
    }

    fn allocate(&self, bytes: usize) -> Result<DeviceBuffer, DeviceError> {
        let memory = HostMemory::zeroed(bytes)
            .map_err(|_| DeviceError::OutOfMemory { device: name(), bytes: bytes as u64 })?;
        Ok(DeviceBuffer::new(memory))
    }

    fn upload(&self, from: &[u8], mut to: DeviceSliceMut<'_>) -> Result<(), DeviceError> {
        check_sizes(from.len(), to.len())?;
        let start = memory::address_mut(&mut to).ok_or_else(|| other_device(to.memory().0.place()))?;
        // SAFETY: `start` begins as many bytes as `from` has, which are `to`'s alone, so that `from` is elsewhere.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), start, from.len()) };
        Ok(())
    }

    fn download(&self, from: DeviceSlice<'_>, to: &mut [u8]) -> Result<(), DeviceError> {
        check_sizes(from.len(), to.len())?;
        let start = memory::address(&from).ok_or_else(|| other_device(from.memory().0.place()))?;
        // SAFETY: `start` begins as many initialised bytes as `to` has, which nothing writes while `from` is borrowed, and
        // which no slice of the host refers to, so that `to` is elsewhere.
        unsafe { ptr::copy_nonoverlapping(start, to.as_mut_ptr(), to.len()) };
        Ok(())
    }

    fn evict(&self, buffers: &[BufferArgument<'_>]) -> bool {
        evict(buffers)
    }

    fn measure_peak(&self, dtype: DType, options: RunOptions, window: Duration) -> Option<f64> {
        let share = match dtype {
            DType::F32 => 1.0,
            // A vector holds half as many of them.
            DType::F64 => 0.5,
            _ => return None,
        };
        let peak = fma_peak(self.vector_bits, options.threads() as usize, window)?;
        Some(share * peak.gflops.best)
    }
}

fn check_sizes(from: usize, to: usize) -> Result<(), DeviceError> {
    if from == to { Ok(()) } else { Err(DeviceError::Size { from, to }) }
}

fn name() -> String {
    "the CPU".to_owned()
}

fn other_device(place: String) -> DeviceError {
    DeviceError::OtherDevice { device: name(), place }
}

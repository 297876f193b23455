//! A GPU as a device: it compiles programs of the `Flat` level, and runs them.
//!
//! | module | holds |
//! |---|---|
//! | `call` | the checks of a call's arguments, and parameters of kernels as bytes |
//! | `executable` | a compiled program: memory that it needs, launches, times |

mod call;
mod executable;

use std::any::Any;
use std::time::Duration;

use tilewright_core::device::{
    CompileError, Device, DeviceBuffer, DeviceError, DeviceSlice, DeviceSliceMut, Executable, RecordedRuns,
};
use tilewright_core::dtype::DType;
use tilewright_core::program::Program;
use tilewright_core::target::{RunOptions, Target};

use self::executable::GpuExecutable;
use crate::driver::{Gpu, Graph};

impl Device for Gpu {
    fn label(&self) -> &str {
        self.product()
    }

    fn target(&self) -> &Target {
        self.as_target()
    }

    fn tensor_alignment(&self) -> usize {
        crate::launch::TENSOR_ALIGNMENT
    }

    fn compile(&self, programs: &[&Program]) -> Vec<Result<Box<dyn Executable>, CompileError>> {
        let compile = |program: &&Program| -> Result<Box<dyn Executable>, CompileError> {
            Ok(Box::new(GpuExecutable::compile(self, program)?))
        };
        programs.iter().map(compile).collect()
    }

    /// The PTX, with the registers of each kernel where the driver knows them.
    fn list(&self, program: &Program) -> Result<String, CompileError> {
        Ok(GpuExecutable::compile(self, program)?.listing())
    }

    fn allocate(&self, bytes: usize) -> Result<DeviceBuffer, DeviceError> {
        self.take(bytes).map(DeviceBuffer::new)
    }

    fn upload(&self, from: &[u8], to: DeviceSliceMut<'_>) -> Result<(), DeviceError> {
        self.copy_from_host(from, to)
    }

    fn download(&self, from: DeviceSlice<'_>, to: &mut [u8]) -> Result<(), DeviceError> {
        self.copy_to_host(from, to)
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn is_recording(&self) -> bool {
        self.current().recording().is_some()
    }

    fn record_runs(
        &self,
        work: &mut dyn FnMut() -> Result<(), DeviceError>,
    ) -> Result<Option<Box<dyn RecordedRuns>>, DeviceError> {
        let (graph, ()) = self.record(work)?;
        Ok(Some(Box::new(graph)))
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        self.wait("kernels ran or copies were made")
    }

    /// Nobody has measured it yet.
    fn measure_peak(&self, _: DType, _: RunOptions, _: Duration) -> Option<f64> {
        None
    }
}

impl RecordedRuns for Graph {
    fn launch(&self) -> Result<(), DeviceError> {
        Graph::launch(self)
    }
}

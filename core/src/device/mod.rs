//! Devices: machines that compile and run programs.
//!
//! A [`Device`] is a processor with its memory, or one GPU. It compiles programs of the `Flat`
//! [level](crate::verify::Level) into [`Executable`]s, holds memory of its own ([`DeviceBuffer`]), times what it runs by
//! its own clock, and knows the speed that it reaches at most. The crates above know devices by this trait alone: one
//! process may hold several, of different kinds.
//!
//! | module | holds |
//! |---|---|
//! | `argument` | what a call passes: buffers in the memory of the host or of a device |
//! | `memory` | a device's buffers, and slices of them |
//! | `executable` | a compiled program |
//! | `error` | why compiling, calling or using memory failed |

mod argument;
mod error;
mod executable;
mod memory;

use std::any::Any;
use std::time::Duration;

pub use argument::{Arguments, BufferArgument};
pub use error::{CallError, CompileError, DeviceError};
pub use executable::Executable;
pub use memory::{DeviceBuffer, DeviceMemory, DeviceSlice, DeviceSliceMut};

use crate::dtype::DType;
use crate::program::Program;
use crate::target::{RunOptions, Target};

/// Runs that a device has [recorded](Device::record_runs), with the memory that they use.
pub trait RecordedRuns: Send + Sync {
    /// Submits all of them, behind the work that this thread has submitted before. They read and write the memory that was named when
    /// they were recorded.
    ///
    /// # Errors
    /// [`DeviceError::Failed`] when the device fails.
    fn launch(&self) -> Result<(), DeviceError>;
}

/// A machine that compiles and runs programs.
pub trait Device: Send + Sync {
    /// A name for people: the processor's or the GPU's, as its maker writes it. Empty when it is unknown.
    fn label(&self) -> &str;

    /// The target that schedules are made for.
    fn target(&self) -> &Target;

    /// Compiles programs of the `Flat` level, one result each. Several programs at once share the fixed costs.
    fn compile(&self, programs: &[&Program]) -> Vec<Result<Box<dyn Executable>, CompileError>>;

    /// Compiles a program of the `Flat` level once more and gives the machine code as text for people, one instruction a line.
    ///
    /// # Errors
    /// As [`Device::compile`].
    fn list(&self, program: &Program) -> Result<String, CompileError>;

    /// Memory of the device, whose contents are unspecified until they are written.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] when there is not as much left.
    fn allocate(&self, bytes: usize) -> Result<DeviceBuffer, DeviceError>;

    /// Copies from the host's memory. When it returns, the source may change.
    ///
    /// # Errors
    /// [`DeviceError`] when the lengths differ, or the memory belongs to another device.
    fn upload(&self, from: &[u8], to: DeviceSliceMut<'_>) -> Result<(), DeviceError>;

    /// Copies to the host's memory, after all runs that were launched before have written what they write.
    ///
    /// # Errors
    /// [`DeviceError`] when the lengths differ, the memory belongs to another device, or such a run has failed.
    fn download(&self, from: DeviceSlice<'_>, to: &mut [u8]) -> Result<(), DeviceError>;

    /// Addresses of tensors in its memory have to be multiples of this, in bytes.
    fn tensor_alignment(&self) -> usize {
        1
    }

    /// The device as its own type, for work that only its kind can do.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }

    /// Waits until all runs and copies that were submitted before are done.
    ///
    /// # Errors
    /// [`DeviceError::Failed`] when one of them has failed.
    fn synchronize(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Whether runs of this thread are recorded at present, and not executed.
    fn is_recording(&self) -> bool {
        false
    }

    /// Records the runs that `work` submits on this thread, instead of executing them, so that they can be launched together. Each
    /// executable has to have run before with the same dimensions. `None` where the device records nothing; `work` is not called then.
    ///
    /// # Errors
    /// The error of `work`, also where it submits what cannot be recorded; [`DeviceError::Failed`] when the device fails.
    fn record_runs(
        &self,
        work: &mut dyn FnMut() -> Result<(), DeviceError>,
    ) -> Result<Option<Box<dyn RecordedRuns>>, DeviceError> {
        let _ = work;
        Ok(None)
    }

    /// Evicts the elements of buffers from the device's caches, so that the next run finds them in memory only; false where the
    /// device cannot do that.
    fn evict(&self, buffers: &[BufferArgument<'_>]) -> bool {
        let _ = buffers;
        false
    }

    /// The operations per second, in 10⁹, that fused multiply-adds of a type reach, measured for about as long as `window`.
    /// `None` when the device has no such instructions, or nobody knows how to measure it.
    fn measure_peak(&self, dtype: DType, options: RunOptions, window: Duration) -> Option<f64>;
}

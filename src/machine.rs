//! The machine that kernels are compiled for and run on.

use std::sync::OnceLock;

use tilewright_core::device::Device;
use tilewright_core::target::{RunContext, RunOptions};
use tilewright_cpu::CpuDevice;

use crate::error::Error;
use crate::settings;

/// The processor that this program runs on.
pub(crate) fn device() -> Result<&'static dyn Device, Error> {
    static DEVICE: OnceLock<Result<CpuDevice, Error>> = OnceLock::new();
    let device = DEVICE.get_or_init(|| {
        CpuDevice::host().map_err(|error| Error::Environment {
            variable: tilewright_cpu::machine::FEATURES_VARIABLE,
            value: std::env::var(tilewright_cpu::machine::FEATURES_VARIABLE).unwrap_or_default(),
            problem: error.to_string(),
        })
    });
    match device {
        Ok(device) => Ok(device),
        Err(error) => Err(error.clone()),
    }
}

/// The circumstances that schedules are made for: the compiler's target, and runs on as many threads as kernels use.
///
/// # Errors
/// [`Error::Environment`] when a setting of the environment cannot be obeyed.
pub fn run_context() -> Result<RunContext, Error> {
    context_of_threads(settings::threads()?)
}

/// The compiler's target, and runs on a number of threads.
pub(crate) fn context_of_threads(threads: usize) -> Result<RunContext, Error> {
    Ok(RunContext::new(device()?.target().clone(), RunOptions::with_threads(threads)))
}

//! The machine that kernels are compiled for and run on.

use std::sync::OnceLock;

use tilewright_core::target::{Backend, RunContext, RunOptions};
use tilewright_cpu::CpuBackend;

use crate::error::Error;
use crate::settings;

/// The compiler.
pub(crate) fn backend() -> Result<&'static dyn Backend, Error> {
    static BACKEND: OnceLock<Result<CpuBackend, Error>> = OnceLock::new();
    let backend = BACKEND.get_or_init(|| {
        CpuBackend::host().map_err(|error| Error::Environment {
            variable: tilewright_cpu::machine::FEATURES_VARIABLE,
            value: std::env::var(tilewright_cpu::machine::FEATURES_VARIABLE).unwrap_or_default(),
            problem: error.to_string(),
        })
    });
    match backend {
        Ok(backend) => Ok(backend),
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
    Ok(RunContext::new(backend()?.target().clone(), RunOptions::with_threads(threads)))
}

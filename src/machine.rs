//! The machine that kernels are compiled for and run on.

use std::sync::{Arc, OnceLock};

use tilewright_core::target::{Backend, Target};
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

/// The machine that schedules are made for: the compiler's, with as many cores as kernels use threads.
///
/// # Errors
/// [`Error::Environment`] when a setting of the environment cannot be obeyed.
pub fn target() -> Result<Arc<Target>, Error> {
    let mut target = backend()?.target().clone();
    target.cores = u32::try_from(settings::threads()?).unwrap_or(u32::MAX);
    Ok(Arc::new(target))
}

//! Errors of the driver as errors of devices.

use cudarc::driver::{DriverError, sys::CUresult};
use tilewright_core::device::DeviceError;

/// An error of the driver in words: its meaning and its name.
pub(super) fn text(error: DriverError) -> String {
    let meaning = error.error_string().map(|text| text.to_string_lossy().into_owned());
    let name = error.error_name().map(|text| text.to_string_lossy().into_owned());
    match (meaning, name) {
        (Ok(meaning), Ok(name)) => format!("{meaning} ({name})"),
        // A newer driver may give codes that it alone knows.
        _ => format!("error {}", error.0 as u32),
    }
}

/// A device that cannot be used.
pub(super) fn unavailable(device: impl Into<String>, problem: impl Into<String>) -> DeviceError {
    DeviceError::Unavailable { device: device.into(), problem: problem.into() }
}

/// An error while a device did something; `bytes` are those of the memory that was asked for, if any.
pub(super) fn failed(device: &str, error: DriverError, doing: &str, bytes: usize) -> DeviceError {
    let device = device.to_owned();
    match error.0 {
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => DeviceError::OutOfMemory { device, bytes: bytes as u64 },
        _ => DeviceError::Failed { device, problem: format!("{} while {doing}", text(error)) },
    }
}

//! The devices that this crate brings: the CPU, which is the default.

use std::sync::Arc;

use tilewright_core::device::Device;
use tilewright_cpu::CpuDevice;
use tilewright_cpu::machine::FEATURES_VARIABLE;
use tilewright_runtime::devices::DefaultDevice;

use crate::Error;

inventory::submit! {
    DefaultDevice { name: "cpu", open: open_cpu }
}

fn open_cpu() -> Result<Arc<dyn Device>, Error> {
    match CpuDevice::host() {
        Ok(device) => Ok(Arc::new(device)),
        Err(error) => Err(Error::Environment {
            variable: FEATURES_VARIABLE,
            value: std::env::var(FEATURES_VARIABLE).unwrap_or_default(),
            problem: error.to_string(),
        }),
    }
}

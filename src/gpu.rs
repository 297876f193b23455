//! NVIDIA GPUs as devices of this process.
//!
//! ```no_run
//! use tilewright::prelude::*;
//!
//! /// y = a + b
//! #[tensor_kernel]
//! pub fn add(a: &Tensor<f32, N>, b: &Tensor<f32, N>) -> Tensor<f32, N> {
//!     let mut y = Tensor::zeros();
//!     for i in 0..N {
//!         y[[i]] = a[[i]] + b[[i]];
//!     }
//!     y
//! }
//!
//! let gpu = tilewright::gpu::open(0)?;
//! let a = gpu.upload(&Tensor::from_fn([1000], |[i]| i as f32)?)?;
//! let twice = add::on(&gpu, &a, &a)?;
//! let four_times = add::on(&gpu, &twice, &twice)?;
//! assert_eq!(four_times.to_host()?[[10]], 40.0);
//! # Ok::<(), tilewright::Error>(())
//! ```

use std::sync::Arc;

use tilewright_core::device::{Device, DeviceError};
use tilewright_gpu::Gpu;
use tilewright_runtime::devices::{self, DeviceHandle, DeviceKind};

use crate::Error;

pub use tilewright_gpu::{DRIVER_VARIABLE, load_driver};

/// The word before the number in names of GPUs: `gpu:0`.
const KIND: &str = "gpu";

inventory::submit! {
    DeviceKind { name: KIND, open: open_named }
}

/// A GPU by its number, from 0, as `nvidia-smi` lists them. It is opened once for the process; its name is `gpu:0`.
///
/// # Errors
/// [`Error::Device`] with [`DeviceError::Unavailable`] when the driver is missing or too old, there is no such GPU, or it is
/// too old; it says which, and what to do.
pub fn open(number: usize) -> Result<DeviceHandle, Error> {
    devices::open(&format!("{KIND}:{number}"))
}

/// How many GPUs there are.
///
/// # Errors
/// [`Error::Device`] with [`DeviceError::Unavailable`] when the driver is missing, too old, or finds none.
pub fn count() -> Result<usize, Error> {
    Ok(Gpu::count()?)
}

fn open_named(which: &str) -> Result<Arc<dyn Device>, Error> {
    let number = which.parse::<usize>().map_err(|_| DeviceError::Unavailable {
        device: format!("{KIND}:{which}"),
        problem: format!("a GPU is named by its number, as in `{KIND}:0`"),
    })?;
    Ok(Arc::new(Gpu::open(number)?))
}

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
//!
//! [`of`] gives the GPU behind a handle, which can do more than any device: work on several [`Stream`]s, kernels that are recorded as a
//! [`Graph`] and launched together, and copies from [page-locked memory](PinnedTensor) while the host does something else.

mod pinned;

use std::path::PathBuf;
use std::sync::Arc;

use tilewright_core::device::{Device, DeviceError};
use tilewright_gpu::Gpu;
use tilewright_runtime::devices::{self, DeviceHandle, DeviceKind};

use crate::Error;

pub use pinned::PinnedTensor;
pub use tilewright_gpu::{DRIVER_VARIABLE, Event, Graph, Stream, load_driver};

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

/// The name of the simulated GPU: `gpu:mock` opens the first GPU of the mock driver, whose library has to lie beside the program.
const MOCK: &str = "mock";

/// The file of the mock driver's library beside this program, where programs, tests and benches find what was built with them.
fn mock_library() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let name = format!("{prefix}tilewright_mock_cuda{suffix}");
    let folders = program.ancestors().skip(1).take(2);
    folders
        .flat_map(|folder| [folder.join(&name), folder.join("deps").join(&name)])
        .find(|file| file.is_file())
}

fn open_mock() -> Result<Arc<dyn Device>, Error> {
    let file = mock_library().ok_or_else(|| DeviceError::Unavailable {
        device: format!("{KIND}:{MOCK}"),
        problem: "the library of the mock driver is not beside this program: build it with `cargo build -p tilewright-mock-cuda`"
            .to_owned(),
    })?;
    load_driver(&file)?;
    Ok(Arc::new(Gpu::open(0)?))
}

/// The GPU that a handle stands for.
///
/// # Errors
/// [`Error::Device`] when it stands for a device of another kind.
pub fn of(device: &DeviceHandle) -> Result<&Gpu, Error> {
    let gpu = device.device().as_any().and_then(|device| device.downcast_ref::<Gpu>());
    gpu.ok_or_else(|| {
        let problem = format!("it is no GPU: open one, as in `{KIND}:0`");
        DeviceError::Unavailable { device: device.name().to_owned(), problem }.into()
    })
}

fn open_named(which: &str) -> Result<Arc<dyn Device>, Error> {
    if which == MOCK {
        return open_mock();
    }
    let number = which.parse::<usize>().map_err(|_| DeviceError::Unavailable {
        device: format!("{KIND}:{which}"),
        problem: format!(
            "a GPU is named by its number, as in `{KIND}:0`; `{KIND}:{MOCK}` is a simulated one"
        ),
    })?;
    Ok(Arc::new(Gpu::open(number)?))
}

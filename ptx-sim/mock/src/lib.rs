//! A CUDA driver without a GPU.
//!
//! The shared library of this crate exports the functions of the CUDA driver (`cuInit`, `cuMemAlloc_v2`, `cuLaunchKernel` …)
//! that a program needs for modules of PTX, memory, streams, events and captured graphs. It executes kernels with the
//! simulator: a race, an access out of bounds or any other fault that the simulator finds makes the launch fail as on a
//! GPU, and the report says in which line.
//!
//! The driver does what is asked of it as late as it may. Work waits in its stream until something waits for it, copies
//! to and from pinned memory included, so that a program that forgets to wait sees wrong results or a fault. Handles are
//! numbers that are looked up: a wrong one is an error code. Times of events are those of a simple model of the device, and
//! the same in each run.
//!
//! # Use
//! A program that loads the driver by name finds this library when it was loaded by its path before, since it bears the
//! driver's name inside; or when a link `libcuda.so.1` in a folder of `LD_LIBRARY_PATH` points to it.
//!
//! The environment variable `TILEWRIGHT_MOCK_CUDA` holds settings, see [`Settings`]; without it there is one device of
//! compute capability 8.0. Faults are printed to standard error.
//!
//! | module | holds |
//! |---|---|
//! | `settings` | devices and their properties, as the environment describes them |
//! | `code` | result codes of the driver |
//! | `driver` | the state of the driver: devices, contexts, memory, streams, events, modules, graphs |
//! | `entry` | the exported functions |

mod code;
mod driver;
mod entry;
mod settings;

use std::path::PathBuf;

pub use settings::{DeviceSettings, Settings, SettingsError};

/// The environment variable with the [`Settings`].
pub const VARIABLE: &str = "TILEWRIGHT_MOCK_CUDA";

/// The file of the shared library that was built beside the program that runs, for tests.
pub fn library() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let name =
        format!("{}tilewright_mock_cuda{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    // Tests and examples lie in folders beside that of the libraries.
    let folders = program.ancestors().skip(1).take(2);
    folders
        .flat_map(|folder| [folder.join(&name), folder.join("deps").join(&name)])
        .find(|file| file.is_file())
}

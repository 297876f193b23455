//! The driver library.

use std::env;
use std::ffi::CString;
use std::path::Path;
use std::sync::Mutex;

use cudarc::driver::{DriverError, result, sys};
use tilewright_core::device::DeviceError;

use super::failure::{text, unavailable};

/// The environment variable that names the file of the driver library, where it is not the one that the system finds.
pub const VARIABLE: &str = "TILEWRIGHT_CUDA_DRIVER";

/// The CUDA version that is needed: 12.0, the first whose driver reads PTX 8.0. The driver's number for it, and its release.
const NEEDED: i32 = 12_000;
const NEEDED_RELEASE: &str = "install NVIDIA's driver of version 525 or later";

/// The functions that are called. A driver that lacks one is found out before the call.
const FUNCTIONS: [&str; 38] = [
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDriverGetVersion",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventElapsedTime",
    "cuEventQuery",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuFuncGetAttribute",
    "cuFuncSetAttribute",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
    "cuGraphInstantiateWithFlags",
    "cuGraphLaunch",
    "cuInit",
    "cuLaunchKernel",
    "cuMemAllocAsync",
    "cuMemFreeAsync",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuMemsetD8Async",
    "cuModuleGetFunction",
    "cuModuleLoadDataEx",
    "cuModuleUnload",
    "cuStreamBeginCapture_v2",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamEndCapture",
    "cuStreamSynchronize",
];

/// Loads the driver library from a file instead of where the system finds it. It has to happen before a GPU is opened.
///
/// # Errors
/// [`DeviceError::Unavailable`] when the file is no library.
pub fn load(file: &Path) -> Result<(), DeviceError> {
    // SAFETY: loading a library runs its initialisers. The user names a driver library, as the linker's configuration does
    // otherwise.
    let library = unsafe { libloading::Library::new(file) };
    let library = library.map_err(|error| {
        unavailable("the CUDA driver", format!("{} cannot be loaded: {error}", file.display()))
    })?;
    // It stays for as long as the program, and is then what its name means.
    std::mem::forget(library);
    Ok(())
}

/// Makes the driver ready, or says why it is not.
///
/// # Errors
/// [`DeviceError::Unavailable`], with what to do.
pub(super) fn initialise() -> Result<(), DeviceError> {
    static READY: Mutex<bool> = Mutex::new(false);
    let mut ready = READY.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !*ready {
        if let Some(file) = env::var_os(VARIABLE) {
            load(Path::new(&file))?;
        }
        check()?;
        *ready = true;
    }
    Ok(())
}

/// The CUDA version that the driver reports, once it is [ready](initialise): 1000 times the major number and 10 times the minor one.
pub(super) fn version() -> Option<u32> {
    asked_version().ok().and_then(|version| u32::try_from(version).ok())
}

fn asked_version() -> Result<i32, DriverError> {
    let mut version = 0;
    // SAFETY: the library is there and has the function, and the place for the result is writable.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }.result()?;
    Ok(version)
}

fn check() -> Result<(), DeviceError> {
    let problem = |problem: String| Err(unavailable("the CUDA driver", problem));
    // SAFETY: the driver's initialisers run, as with any program that uses it.
    if !unsafe { sys::is_culib_present() } {
        return problem(format!(
            "libcuda.so.1 is not found: {NEEDED_RELEASE}, or set {VARIABLE} to the file of the library"
        ));
    }
    // SAFETY: the library is there.
    let library = unsafe { sys::culib() };
    for name in FUNCTIONS {
        let symbol = CString::new(name).unwrap_or_default();
        // SAFETY: the symbol is looked up and not used.
        if unsafe { library.get::<unsafe extern "C" fn()>(symbol.as_bytes_with_nul()) }.is_err() {
            return problem(format!("it has no function `{name}` and is too old: {NEEDED_RELEASE}"));
        }
    }
    let version = match asked_version() {
        Ok(version) => version,
        Err(error) => return problem(format!("it does not tell its version: {}", text(error))),
    };
    if version < NEEDED {
        let (major, minor) = (version / 1000, version % 1000 / 10);
        return problem(format!("it knows CUDA {major}.{minor}, and 12.0 is needed: {NEEDED_RELEASE}"));
    }
    match result::init() {
        Ok(()) => Ok(()),
        Err(error) if error.0 == sys::CUresult::CUDA_ERROR_NO_DEVICE => problem(
            "it finds no GPU: see whether `nvidia-smi` lists one, and whether CUDA_VISIBLE_DEVICES hides it"
                .into(),
        ),
        Err(error) => problem(format!("it cannot be initialised: {}", text(error))),
    }
}

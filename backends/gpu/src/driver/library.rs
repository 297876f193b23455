//! The driver library.

use std::env;
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use cudarc::driver::{DriverError, result, sys};
use tilewright_core::device::DeviceError;

use super::failure::{text, unavailable};

/// The environment variable that names the file of the driver library, where it is not the one that the system finds.
pub const VARIABLE: &str = "TILEWRIGHT_CUDA_DRIVER";

/// The CUDA version that is needed: 12.0, the first whose driver reads PTX 8.0. The driver's number for it, and its release.
const NEEDED: i32 = 12_000;
const NEEDED_RELEASE: &str = "install NVIDIA's driver of version 525 or later";

/// The functions that are called. A driver that lacks one is found out before the call.
const FUNCTIONS: [&str; 42] = [
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuCtxSynchronize",
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
    "cuMemFreeHost",
    "cuMemHostAlloc",
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
    "cuStreamWaitEvent",
];

/// Loads the driver library from a file instead of where the system finds it. It has to happen before a GPU is opened.
///
/// # Errors
/// [`DeviceError::Unavailable`] when the file is no library, or another one is in use already.
pub fn load(file: &Path) -> Result<(), DeviceError> {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    load_once(&mut state, file)
}

/// The driver of this process.
struct State {
    /// The file that it was loaded from, where it is not the one that the system finds.
    file: Option<PathBuf>,
    /// Whether it is known to be new enough, and initialised.
    is_ready: bool,
}

static STATE: Mutex<State> = Mutex::new(State { file: None, is_ready: false });

fn load_once(state: &mut State, file: &Path) -> Result<(), DeviceError> {
    if state.file.as_deref() == Some(file) {
        return Ok(());
    }
    if state.is_ready || state.file.is_some() {
        let own =
            state.file.as_ref().map_or("the one of the system".to_owned(), |own| own.display().to_string());
        let problem =
            format!("{} cannot be loaded: this process uses another one already, {own}", file.display());
        return Err(unavailable("the CUDA driver", problem));
    }
    // SAFETY: loading a library runs its initialisers. The user names a driver library, as the linker's configuration does
    // otherwise.
    let library = unsafe { libloading::Library::new(file) };
    let library = library.map_err(|error| {
        unavailable("the CUDA driver", format!("{} cannot be loaded: {error}", file.display()))
    })?;
    // It stays for as long as the program, and is then what its name means.
    std::mem::forget(library);
    state.file = Some(file.to_owned());
    Ok(())
}

/// Makes the driver ready, or says why it is not.
///
/// # Errors
/// [`DeviceError::Unavailable`], with what to do.
pub(super) fn initialise() -> Result<(), DeviceError> {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    if !state.is_ready {
        if state.file.is_none()
            && let Some(file) = env::var_os(VARIABLE)
        {
            load_once(&mut state, Path::new(&file))?;
        }
        check()?;
        state.is_ready = true;
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

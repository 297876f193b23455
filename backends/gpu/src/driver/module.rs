//! PTX that the driver compiles, and launches of its kernels.

use std::ffi::{CString, c_void};
use std::fmt::Write;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUfunction_attribute_enum as Attribute, CUjit_option, CUresult};
use cudarc::driver::{CudaStream, DriverError, result};
use tilewright_core::device::DeviceError;

use super::Gpu;
use super::failure::text;

/// Room for what the driver's compiler says about a module.
const LOG_BYTES: usize = 16 << 10;

/// A module on a GPU, unloaded when it and all of its kernels are dropped.
#[derive(Clone)]
pub(crate) struct Module {
    loaded: Arc<Loaded>,
}

struct Loaded {
    gpu: Gpu,
    module: sys::CUmodule,
}

// SAFETY: the driver's functions may be called with a module from any thread.
unsafe impl Send for Loaded {}
// SAFETY: as above, from several at once.
unsafe impl Sync for Loaded {}

/// A kernel of a module.
#[derive(Clone)]
pub(crate) struct Kernel {
    function: sys::CUfunction,
    module: Module,
    name: String,
}

// SAFETY: the driver's functions may be called with a kernel from any thread.
unsafe impl Send for Kernel {}
// SAFETY: as above, from several at once.
unsafe impl Sync for Kernel {}

/// Why a module was not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LoadError {
    /// The driver's compiler refuses the text; its words, with the lines that they are about.
    Refused(String),
    /// The GPU fails, or has no memory left.
    Device(DeviceError),
}

/// The extents of a launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extents {
    /// Blocks along each axis.
    pub(crate) grid: [u32; 3],
    /// Threads of a block along each axis.
    pub(crate) block: [u32; 3],
    /// Dynamic shared memory of a block, in bytes.
    pub(crate) dynamic_shared_bytes: u32,
}

impl Module {
    /// Compiles and loads PTX.
    ///
    /// # Errors
    /// [`LoadError::Refused`] when the text is wrong or the driver is too old for it.
    pub(crate) fn load(gpu: &Gpu, ptx: &str) -> Result<Module, LoadError> {
        gpu.bind("loading a module").map_err(LoadError::Device)?;
        let source = CString::new(ptx)
            .map_err(|_| LoadError::Refused("the text of the module contains a zero byte".to_owned()))?;
        let mut log = vec![0_u8; LOG_BYTES];
        let mut options =
            [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        let mut values: [*mut c_void; 2] = [log.as_mut_ptr().cast(), LOG_BYTES as *mut c_void];
        let mut module = std::ptr::null_mut();
        // SAFETY: the text ends in a zero byte, there are two options with their values, and the buffer has as many bytes as
        // they say.
        let code = unsafe {
            sys::cuModuleLoadDataEx(
                &raw mut module,
                source.as_ptr().cast(),
                2,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        match code {
            CUresult::CUDA_SUCCESS => Ok(Module { loaded: Arc::new(Loaded { gpu: gpu.clone(), module }) }),
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                let device = gpu.name().to_owned();
                Err(LoadError::Device(DeviceError::OutOfMemory { device, bytes: ptx.len() as u64 }))
            }
            _ if is_refusal(code) => {
                let end = log.iter().position(|byte| *byte == 0).unwrap_or(LOG_BYTES);
                let log = String::from_utf8_lossy(&log[..end]);
                Err(LoadError::Refused(explain(&text(DriverError(code)), &log, ptx)))
            }
            _ => Err(LoadError::Device(gpu.failed(DriverError(code), "loading a module"))),
        }
    }

    /// A kernel, which may use so much dynamic shared memory.
    ///
    /// # Errors
    /// [`DeviceError::Failed`] when there is no such kernel, or a block cannot have as much shared memory.
    pub(crate) fn kernel(&self, name: &str, dynamic_shared_bytes: u32) -> Result<Kernel, DeviceError> {
        let gpu = &self.loaded.gpu;
        let doing = format!("looking up kernel `{name}`");
        gpu.bind(&doing)?;
        let symbol = CString::new(name)
            .map_err(|_| gpu.failed(DriverError(CUresult::CUDA_ERROR_NOT_FOUND), &doing))?;
        // SAFETY: the module is loaded.
        let function = unsafe { result::module::get_function(self.loaded.module, symbol) }
            .map_err(|error| gpu.failed(error, &doing))?;
        let kernel = Kernel { function, module: self.clone(), name: name.to_owned() };
        if dynamic_shared_bytes > 0 {
            let bytes = i32::try_from(dynamic_shared_bytes).unwrap_or(i32::MAX);
            let attribute = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the function is loaded.
            unsafe { result::function::set_function_attribute(function, attribute, bytes) }.map_err(
                |error| {
                    gpu.failed(
                        error,
                        &format!("asking for {bytes} bytes of shared memory for kernel `{name}`"),
                    )
                },
            )?;
        }
        Ok(kernel)
    }
}

impl Module {
    /// Whether both stand for the same module.
    pub(super) fn is(&self, other: &Module) -> bool {
        Arc::ptr_eq(&self.loaded, &other.loaded)
    }
}

impl Kernel {
    /// The module that it is of.
    pub(crate) fn module(&self) -> &Module {
        &self.module
    }

    /// The 32-bit registers of a thread, where the driver knows them.
    pub(crate) fn registers(&self) -> Option<u32> {
        let gpu = &self.module.loaded.gpu;
        gpu.bind("asking for registers").ok()?;
        let attribute = Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS;
        // SAFETY: the function is loaded.
        let count = unsafe { result::function::get_function_attribute(self.function, attribute) };
        count.ok().and_then(|count| u32::try_from(count).ok())
    }

    /// Submits a launch. Each parameter is given by its bytes.
    ///
    /// # Errors
    /// [`DeviceError::Failed`] when the extents are beyond the GPU's limits, or it has failed before.
    ///
    /// # Safety
    /// The kernel takes parameters of these sizes in this order, and accesses no memory but what they point to, which stays until the
    /// stream has come there.
    pub(crate) unsafe fn launch<P: AsRef<[u8]>>(
        &self,
        extents: Extents,
        params: &[P],
        stream: &CudaStream,
    ) -> Result<(), DeviceError> {
        let gpu = &self.module.loaded.gpu;
        let doing = || format!("launching kernel `{}`", self.name);
        gpu.bind("launching a kernel")?;
        let mut pointers: Vec<*mut c_void> =
            params.iter().map(|param| param.as_ref().as_ptr().cast_mut().cast()).collect();
        let [grid, block] = [extents.grid, extents.block].map(|[x, y, z]| (x, y, z));
        // SAFETY: the caller promises it; the driver takes the parameters before the call returns.
        unsafe {
            result::launch_kernel(
                self.function,
                grid,
                block,
                extents.dynamic_shared_bytes,
                stream.cu_stream(),
                &mut pointers,
            )
        }
        .map_err(|error| gpu.failed(error, &doing()))
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // The driver waits for launches that use the module.
        if self.gpu.bind("unloading a module").is_ok() {
            // SAFETY: it was loaded, and no kernel of it is left.
            let _ = unsafe { result::module::unload(self.module) };
        }
    }
}

/// Whether a code is about the text, and not about the GPU.
fn is_refusal(code: CUresult) -> bool {
    matches!(
        code,
        CUresult::CUDA_ERROR_INVALID_PTX
            | CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION
            | CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU
            | CUresult::CUDA_ERROR_INVALID_IMAGE
            | CUresult::CUDA_ERROR_INVALID_SOURCE
            | CUresult::CUDA_ERROR_JIT_COMPILER_NOT_FOUND
            | CUresult::CUDA_ERROR_JIT_COMPILATION_DISABLED
    )
}

/// The words of the driver's compiler, each line that they are about beneath.
fn explain(meaning: &str, log: &str, ptx: &str) -> String {
    let mut explained = meaning.to_owned();
    for message in log.lines().filter(|line| !line.trim().is_empty()) {
        let _ = write!(explained, "\n{message}");
        let place = message.split_once("line ").map_or("", |(_, rest)| rest);
        let digits: String = place.chars().take_while(char::is_ascii_digit).collect();
        let number = digits.parse::<usize>().ok();
        let line = number.and_then(|number| ptx.lines().nth(number.checked_sub(1)?));
        if let Some(line) = line {
            let _ = write!(explained, "\n  {digits} | {}", line.trim_end());
        }
        if let Some(statement) = number.and_then(|number| statement_of(ptx, number)) {
            let _ = write!(explained, "\n  of `{statement}`");
        }
    }
    explained
}

/// The statement that a line of a text with comments is part of: the last comment in front of it in its kernel.
fn statement_of(ptx: &str, number: usize) -> Option<&str> {
    let lines: Vec<&str> = ptx.lines().take(number).map(str::trim).collect();
    let in_kernel = lines.iter().rev().take_while(|line| !line.contains(".entry"));
    in_kernel.into_iter().find_map(|line| line.strip_prefix("// "))
}

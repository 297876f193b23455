//! The library, its devices, and kernels.

use std::ffi::{CString, c_char, c_uint};
use std::sync::{Arc, OnceLock};

use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DriverError, result, sys};

/// A device of which nothing is expected to fail.
pub(crate) const SOUND: usize = 0;
/// Another such device.
pub(crate) const OTHER: usize = 1;
/// A device with little memory.
pub(crate) const SMALL: usize = 2;
/// A device that is lost after three operations.
pub(crate) const LOST: usize = 3;
/// Devices for launches that fail, each for one test, since a failure ends the context.
pub(crate) const FAILING: [usize; 5] = [4, 5, 6, 7, 8];
/// Sound devices, each for one test that sees work not being done yet: on a shared device, another test that gives memory back or
/// unloads a module has all work of the device done.
pub(crate) const QUIET: [usize; 3] = [9, 10, 11];

const SETTINGS: &str = "driver=12040
    device=sm_80,name=Sound device=sm_90 device=sm_80,memory=1M device=sm_80,lose-after=3
    device=sm_80 device=sm_80 device=sm_80 device=sm_80 device=sm_80
    device=sm_80 device=sm_80 device=sm_80";

/// Loads the library, once.
pub(crate) fn load() {
    static LOADED: OnceLock<libloading::Library> = OnceLock::new();
    LOADED.get_or_init(|| {
        let file = tilewright_mock_cuda::library().expect("the library is built with the tests");
        // SAFETY: loading the library runs no code of it.
        let library = unsafe { libloading::Library::new(file) }.expect("it is a library");
        let settings = CString::new(SETTINGS).expect("it has no zero byte");
        // SAFETY: the function has this type, and the string ends in a zero byte.
        let code = unsafe {
            let configure: libloading::Symbol<'_, unsafe extern "C" fn(*const c_char) -> c_uint> =
                library.get(b"tilewright_mock_configure\0").expect("the library is ours");
            configure(settings.as_ptr())
        };
        assert_eq!(code, 0);
        library
    });
}

/// The primary context of a device.
pub(crate) fn context(device: usize) -> Arc<CudaContext> {
    load();
    CudaContext::new(device).expect("the device is there")
}

/// A kernel `scale(data, factor, count)` that multiplies words in place.
pub(crate) const SCALE: &str = "
    .version 8.0
    .target sm_80
    .address_size 64
    .visible .entry scale(.param .u64 data, .param .u32 factor, .param .u32 count) {
        .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %rd<4>;
        ld.param.u64 %rd1, [data]; ld.param.u32 %r1, [factor]; ld.param.u32 %r2, [count];
        mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x;
        mad.lo.u32 %r6, %r3, %r4, %r5;
        setp.ge.u32 %p, %r6, %r2; @%p ret;
        mul.wide.u32 %rd2, %r6, 4; add.u64 %rd3, %rd1, %rd2;
        ld.global.u32 %r7, [%rd3]; mul.lo.u32 %r7, %r7, %r1; st.global.u32 [%rd3], %r7;
        ret;
    }";

/// A module, unloaded when it is dropped.
pub(crate) struct Loaded {
    pub(crate) module: sys::CUmodule,
    context: Arc<CudaContext>,
}

impl Loaded {
    pub(crate) fn new(context: &Arc<CudaContext>, text: &str) -> Result<Loaded, DriverError> {
        context.bind_to_thread()?;
        let text = CString::new(text).expect("it has no zero byte");
        // SAFETY: the text ends in a zero byte.
        let module = unsafe { result::module::load_data(text.as_ptr().cast()) }?;
        Ok(Loaded { module, context: Arc::clone(context) })
    }

    pub(crate) fn function(&self, name: &str) -> Result<sys::CUfunction, DriverError> {
        // SAFETY: the module is loaded.
        unsafe { result::module::get_function(self.module, CString::new(name).expect("it has no zero byte")) }
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let _ = self.context.bind_to_thread();
        // SAFETY: the module is loaded, and nobody uses it any more.
        let _ = unsafe { result::module::unload(self.module) };
    }
}

/// Launches a kernel of words: a buffer, then numbers.
pub(crate) fn launch(
    stream: &CudaStream,
    function: sys::CUfunction,
    threads: u32,
    data: u64,
    numbers: &[u32],
) -> Result<(), DriverError> {
    let mut params: Vec<*mut std::ffi::c_void> = vec![(&raw const data).cast_mut().cast()];
    params.extend(numbers.iter().map(|number| std::ptr::from_ref(number).cast_mut().cast()));
    stream.context().bind_to_thread()?;
    let blocks = threads.div_ceil(64);
    // SAFETY: the kernel takes these parameters, which live until the call returns.
    unsafe { result::launch_kernel(function, (blocks, 1, 1), (64, 1, 1), 0, stream.cu_stream(), &mut params) }
}

/// The address of a slice, whatever uses it in other streams.
pub(crate) fn address(slice: &CudaSlice<u32>, stream: &CudaStream) -> u64 {
    use cudarc::driver::DevicePtr;
    slice.device_ptr(stream).0
}

/// The code of an error.
#[track_caller]
pub(crate) fn code<T>(result: Result<T, DriverError>) -> sys::CUresult {
    match result {
        Ok(_) => panic!("an error is wanted"),
        Err(DriverError(code)) => code,
    }
}

//! Handles that are none: each gives an error code, and nothing is followed.

use cudarc::driver::sys::{self, CUresult as Code};

use crate::support::{Loaded, SCALE, SOUND, context};

#[test]
fn wrong_handles_are_error_codes() {
    let context = context(SOUND);
    let module = Loaded::new(&context, SCALE).expect("it is right");
    let function = module.function("scale").expect("it is there");
    // Handles of other kinds, addresses, and numbers.
    let strange: [usize; 4] = [module.module as usize, context.cu_ctx() as usize, 8, usize::MAX];
    for handle in strange {
        // SAFETY: the driver looks handles up and follows none; all places for results are writable.
        unsafe {
            let mut place = std::ptr::null_mut();
            assert_eq!(sys::cuStreamSynchronize(handle as _), Code::CUDA_ERROR_INVALID_HANDLE);
            assert_eq!(sys::cuStreamDestroy_v2(handle as _), Code::CUDA_ERROR_INVALID_HANDLE);
            assert_eq!(sys::cuEventSynchronize(handle as _), Code::CUDA_ERROR_INVALID_HANDLE);
            assert_eq!(sys::cuEventDestroy_v2(handle as _), Code::CUDA_ERROR_INVALID_HANDLE);
            let null = std::ptr::null_mut::<std::ffi::c_void>();
            let launched =
                sys::cuLaunchKernel(handle as _, 1, 1, 1, 1, 1, 1, 0, null.cast(), null.cast(), null.cast());
            assert_eq!(launched, Code::CUDA_ERROR_INVALID_HANDLE);
            assert_eq!(sys::cuGraphLaunch(handle as _, null.cast()), Code::CUDA_ERROR_INVALID_VALUE);
            assert_eq!(sys::cuGraphDestroy(handle as _), Code::CUDA_ERROR_INVALID_VALUE);
            if handle != context.cu_ctx() as usize {
                assert_eq!(sys::cuCtxSetCurrent(handle as _), Code::CUDA_ERROR_INVALID_CONTEXT);
            }
            if handle != module.module as usize {
                assert_eq!(sys::cuModuleUnload(handle as _), Code::CUDA_ERROR_INVALID_HANDLE);
                let name = c"scale".as_ptr();
                assert_eq!(
                    sys::cuModuleGetFunction(&mut place, handle as _, name),
                    Code::CUDA_ERROR_INVALID_HANDLE
                );
            }
        }
    }
    // SAFETY: as above. A missing place for a result, missing parameters, missing text.
    unsafe {
        let null = std::ptr::null_mut::<std::ffi::c_void>();
        assert_eq!(sys::cuStreamCreate(null.cast(), 0), Code::CUDA_ERROR_INVALID_VALUE);
        assert_eq!(sys::cuMemAlloc_v2(std::ptr::null_mut(), 8), Code::CUDA_ERROR_INVALID_VALUE);
        let launched =
            sys::cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, null.cast(), null.cast(), null.cast());
        assert_eq!(launched, Code::CUDA_ERROR_INVALID_VALUE);
        let mut place = std::ptr::null_mut();
        assert_eq!(sys::cuModuleLoadData(&mut place, std::ptr::null()), Code::CUDA_ERROR_INVALID_VALUE);
        assert_eq!(sys::cuMemcpyHtoD_v2(0, std::ptr::null(), 4), Code::CUDA_ERROR_INVALID_VALUE);
    }
    context.synchronize().expect("none of these ends the context");
}

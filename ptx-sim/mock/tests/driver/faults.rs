//! Kernels that do wrong, and devices that are lost.

use cudarc::driver::sys::CUresult as Code;
use cudarc::driver::{CudaContext, sys};

use crate::support::{FAILING, LOST, Loaded, SCALE, address, code, context, launch};

/// A failed launch is known at the next wait, and ends the context: nothing works until a new one is made.
#[test]
fn accesses_out_of_bounds_end_the_context() {
    let context = context(FAILING[1]);
    let stream = context.default_stream();
    let module = Loaded::new(&context, SCALE).expect("it is right");
    let scale = module.function("scale").expect("it is there");
    let data = stream.clone_htod(&[1_u32; 64]).expect("it fits");
    launch(&stream, scale, 65, address(&data, &stream), &[2, 65]).expect("it is submitted");
    assert_eq!(code(stream.synchronize()), Code::CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_eq!(code(stream.clone_htod(&[1_u32])), Code::CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_eq!(code(Loaded::new(&context, SCALE)), Code::CUDA_ERROR_ILLEGAL_ADDRESS);
    drop((data, module, stream, context));
    // The last user of the primary context is gone.
    let fresh = CudaContext::new(FAILING[1]).expect("the device is sound");
    let stream = fresh.default_stream();
    assert_eq!(stream.clone_dtoh(&stream.clone_htod(&[4_u32]).expect("it fits")).expect("it is there"), [4]);
}

#[test]
fn races_fail() {
    let context = context(FAILING[2]);
    let stream = context.default_stream();
    // All threads write their number to the first word.
    let text = SCALE
        .replace("add.u64 %rd3, %rd1, %rd2;", "mov.u64 %rd3, %rd1;")
        .replace("ld.global.u32 %r7, [%rd3]; mul.lo.u32 %r7, %r7, %r1;", "mov.u32 %r7, %r6;");
    let module = Loaded::new(&context, &text).expect("it is right");
    let scale = module.function("scale").expect("it is there");
    let data = stream.clone_htod(&[1_u32; 64]).expect("it fits");
    launch(&stream, scale, 64, address(&data, &stream), &[2, 64]).expect("it is submitted");
    assert_eq!(code(stream.synchronize()), Code::CUDA_ERROR_LAUNCH_FAILED);
}

#[test]
fn misaligned_accesses_fail() {
    let context = context(FAILING[3]);
    let stream = context.default_stream();
    let module = Loaded::new(&context, SCALE).expect("it is right");
    let scale = module.function("scale").expect("it is there");
    let data = stream.clone_htod(&[1_u32; 65]).expect("it fits");
    launch(&stream, scale, 64, address(&data, &stream) + 2, &[2, 64]).expect("it is submitted");
    assert_eq!(code(stream.synchronize()), Code::CUDA_ERROR_MISALIGNED_ADDRESS);
}

#[test]
fn a_lost_device_fails_for_ever() {
    let context = context(LOST);
    let stream = context.default_stream();
    let mut data = stream.clone_htod(&[1_u32; 4]).expect("it fits");
    let values = [2_u32; 4];
    let mut tries = 0;
    let failure = loop {
        tries += 1;
        assert!(tries < 10);
        let copied = stream.memcpy_htod(&values, &mut data).and_then(|()| stream.synchronize());
        if let Err(error) = copied {
            break error;
        }
    };
    assert_eq!(failure.0, Code::CUDA_ERROR_UNKNOWN);
    assert_eq!(values, [2; 4]);
    drop((data, stream, context));
    assert_eq!(code(CudaContext::new(LOST)), Code::CUDA_ERROR_UNKNOWN);
}

#[test]
fn errors_have_names() {
    let context = context(FAILING[4]);
    drop(context);
    let error = cudarc::driver::DriverError(sys::CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_eq!(error.error_name().expect("it has one").to_str(), Ok("CUDA_ERROR_ILLEGAL_ADDRESS"));
    assert_eq!(
        error.error_string().expect("it has one").to_str(),
        Ok("an illegal memory access was encountered")
    );
}

//! The driver's path on the mock driver, whose kernels the simulator executes.

use std::ffi::{CString, c_char, c_uint};
use std::sync::OnceLock;
use std::time::Duration;

use tilewright_core::device::{DeviceBuffer, DeviceError};

use super::module::{Extents, LoadError, Module};
use super::{Gpu, library};

/// GPUs of which nothing is expected to fail; an old one, a small one, one that is soon lost; and one for a launch that fails.
const SOUND: usize = 0;
const OTHER: usize = 1;
const OLD: usize = 2;
const SMALL: usize = 3;
const LOST: usize = 4;
const FAILING: usize = 5;

const SETTINGS: &str =
    "device=sm_80,name=Sound,multiprocessors=20 device=sm_90 device=sm_75 device=sm_80,memory=1M
    device=sm_80,lose-after=3 device=sm_80";

/// Multiplies words in place.
const SCALE: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 data, .param .u32 factor) {
    .reg .b32 %r<8>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [data]; ld.param.u32 %r1, [factor];
    mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x;
    mad.lo.u32 %r6, %r3, %r4, %r5;
    mul.wide.u32 %rd2, %r6, 4; add.u64 %rd3, %rd1, %rd2;
    ld.global.u32 %r7, [%rd3]; mul.lo.u32 %r7, %r7, %r1; st.global.u32 [%rd3], %r7;
    ret;
}";

/// Opens a GPU of the mock driver.
fn open(number: usize) -> Result<Gpu, DeviceError> {
    static CONFIGURED: OnceLock<libloading::Library> = OnceLock::new();
    CONFIGURED.get_or_init(|| {
        let file = tilewright_mock_cuda::library().expect("the mock driver is built with the tests");
        library::load(&file).expect("it is a library");
        // SAFETY: it is loaded already.
        let library = unsafe { libloading::Library::new(file) }.expect("it is a library");
        let settings = CString::new(SETTINGS).expect("it has no zero byte");
        // SAFETY: the function has this type, and the string ends in a zero byte.
        let code = unsafe {
            let configure: libloading::Symbol<'_, unsafe extern "C" fn(*const c_char) -> c_uint> =
                library.get(b"tilewright_mock_configure\0").expect("the mock driver has it");
            configure(settings.as_ptr())
        };
        assert_eq!(code, 0);
        library
    });
    Gpu::open(number)
}

/// A buffer with words.
fn upload(gpu: &Gpu, words: &[u32]) -> Result<DeviceBuffer, DeviceError> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut buffer = DeviceBuffer::new(gpu.take(bytes.len())?);
    gpu.copy_from_host(&bytes, buffer.as_mut_slice())?;
    Ok(buffer)
}

fn download(gpu: &Gpu, buffer: &DeviceBuffer) -> Result<Vec<u32>, DeviceError> {
    let mut bytes = vec![0; buffer.len()];
    gpu.copy_to_host(buffer.as_slice(), &mut bytes)?;
    Ok(bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect())
}

/// Multiplies as many words as 32 threads of each block have; the number of blocks is not checked against the buffer.
fn scale(gpu: &Gpu, buffer: &DeviceBuffer, blocks: u32, factor: u32) -> Result<(), DeviceError> {
    let module = Module::load(gpu, SCALE).expect("the text is right");
    let kernel = module.kernel("scale", 0)?;
    let address = gpu.place(buffer.as_slice().memory(), true)?.1;
    let params = [address.to_le_bytes().to_vec(), factor.to_le_bytes().to_vec()];
    let extents = Extents { grid: [blocks, 1, 1], block: [32, 1, 1], dynamic_shared_bytes: 0 };
    // SAFETY: the kernel takes an address and a number; the mock driver notices accesses outside of the buffer.
    unsafe { kernel.launch(extents, &params, gpu.current().stream()) }
}

#[test]
fn a_gpu_tells_its_facts() {
    let gpu = open(SOUND).expect("it is there");
    assert_eq!((gpu.name(), gpu.product()), ("GPU 0", "Sound"));
    let target = gpu.facts();
    assert_eq!(target.architecture(), "sm_80");
    assert_eq!((target.multiprocessors, target.warp_size), (20, 32));
    assert_eq!(target.shared_bytes_per_block_opt_in, 163 << 10);
    assert_eq!(open(OTHER).expect("it is there").facts().architecture(), "sm_90");
}

#[test]
fn a_gpu_that_cannot_be_used_is_unavailable() {
    let message = |number| match open(number) {
        Err(error @ DeviceError::Unavailable { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(message(7), "GPU 7 cannot be used: there are 6, with numbers from 0");
    assert!(message(OLD).contains("its compute capability is 7.5; 8.0 or later is needed"));
}

#[test]
fn memory_is_copied_there_and_back() {
    let gpu = open(SOUND).expect("it is there");
    let words: Vec<u32> = (0..1000).collect();
    let buffer = upload(&gpu, &words).expect("it fits");
    assert_eq!(download(&gpu, &buffer), Ok(words));
    assert_eq!(buffer.place(), "GPU 0");
    let mut empty = DeviceBuffer::new(gpu.take(0).expect("it fits"));
    assert_eq!(gpu.copy_from_host(&[], empty.as_mut_slice()), Ok(()));
    assert_eq!(gpu.copy_to_host(empty.as_slice(), &mut []), Ok(()));
}

#[test]
fn copies_that_do_not_fit_are_refused() {
    let gpu = open(SOUND).expect("it is there");
    let mut buffer = upload(&gpu, &[1, 2]).expect("it fits");
    assert_eq!(gpu.copy_from_host(&[0; 7], buffer.as_mut_slice()), Err(DeviceError::Size { from: 7, to: 8 }));
    let other = open(OTHER).expect("it is there");
    let error = other.copy_to_host(buffer.as_slice(), &mut [0; 8]);
    assert_eq!(error, Err(DeviceError::OtherDevice { device: "GPU 1".into(), place: "GPU 0".into() }));
}

#[test]
fn memory_that_is_used_up_is_an_error_and_can_be_given_back() {
    let gpu = open(SMALL).expect("it is there");
    let half = gpu.take(1 << 19).expect("it fits");
    let error = gpu.take(1 << 20).map(|_| ());
    assert_eq!(error, Err(DeviceError::OutOfMemory { device: "GPU 3".into(), bytes: 1 << 20 }));
    drop(half);
    gpu.take(1 << 20).expect("all of it is free");
}

#[test]
fn kernels_are_compiled_and_launched() {
    let gpu = open(SOUND).expect("it is there");
    let buffer = upload(&gpu, &[3; 64]).expect("it fits");
    scale(&gpu, &buffer, 2, 5).expect("it is right");
    assert_eq!(download(&gpu, &buffer), Ok(vec![15; 64]));
}

/// The compiler's words come with the line that they are about.
#[test]
fn a_module_that_is_refused_shows_the_line() {
    let gpu = open(SOUND).expect("it is there");
    let wrong = SCALE.replace("mad.lo.u32", "mad.low.u32");
    let Err(LoadError::Refused(message)) = Module::load(&gpu, &wrong) else { panic!("it is wrong") };
    assert!(message.starts_with("a PTX JIT compilation failed (CUDA_ERROR_INVALID_PTX)\n"), "{message}");
    assert!(message.contains("\n  9 |     mad.low.u32 %r6, %r3, %r4, %r5;"), "{message}");
    let newer = SCALE.replace("sm_80", "sm_90");
    let Err(LoadError::Refused(message)) = Module::load(&gpu, &newer) else { panic!("it is wrong") };
    assert!(message.contains("sm_90 does not run on sm_80"), "{message}");
    let module = Module::load(&gpu, SCALE).expect("it is right");
    let Err(DeviceError::Failed { problem, .. }) = module.kernel("other", 0).map(|_| ()) else {
        panic!("it is not there")
    };
    assert!(problem.contains("looking up kernel `other`"), "{problem}");
}

/// Where the text says which statement an instruction is part of, so do the compiler's words.
#[test]
fn a_module_that_is_refused_shows_the_statement() {
    let gpu = open(SOUND).expect("it is there");
    let program = "kernel halves(in x: f32[64], out y: f32[64]) {
  bound thread_x for i in 0..64 {
    y[i] = x[i] * 0.5
  }
}";
    let program = program.parse().expect("a program");
    let plain = crate::emit(&program, gpu.facts()).expect("it is flat").ptx;
    let commented = crate::emit_with_comments(&program, gpu.facts()).expect("it is flat").ptx;
    let lines = commented.lines().filter(|line| !line.trim().starts_with("//"));
    assert!(lines.eq(plain.lines()), "{commented}");
    Module::load(&gpu, &commented).expect("it is right");
    let wrong = commented.replace("mul.rn.f32", "mul.nr.f32");
    assert_ne!(wrong, commented);
    let Err(LoadError::Refused(message)) = Module::load(&gpu, &wrong) else { panic!("it is wrong") };
    assert!(message.contains("\n  of `y[i] = x[i] * 0.5`"), "{message}");
}

#[test]
fn launches_beyond_limits_name_the_kernel() {
    let gpu = open(SOUND).expect("it is there");
    let module = Module::load(&gpu, SCALE).expect("it is right");
    let kernel = module.kernel("scale", 0).expect("it is there");
    let extents = Extents { grid: [1; 3], block: [2048, 1, 1], dynamic_shared_bytes: 0 };
    let params = [vec![0; 8], vec![0; 4]];
    // SAFETY: the launch is refused.
    let error = unsafe { kernel.launch(extents, &params, gpu.current().stream()) };
    let Err(DeviceError::Failed { problem, .. }) = error else { panic!("{error:?}") };
    assert!(problem.contains("launching kernel `scale`"), "{problem}");
    assert!(module.kernel("scale", 200 << 10).is_err(), "a block cannot have as much shared memory");
    assert_eq!(gpu.wait("waiting"), Ok(()));
}

#[test]
fn work_is_timed_by_the_gpu() {
    let gpu = open(OTHER).expect("it is there");
    let buffer = upload(&gpu, &[1; 32]).expect("it fits");
    let module = Module::load(&gpu, SCALE).expect("it is right");
    let kernel = module.kernel("scale", 0).expect("it is there");
    let address = gpu.place(buffer.as_slice().memory(), true).expect("it is of this GPU").1;
    let params = [address.to_le_bytes().to_vec(), 2_u32.to_le_bytes().to_vec()];
    let extents = Extents { grid: [1; 3], block: [32, 1, 1], dynamic_shared_bytes: 0 };
    let time = |repetitions| {
        // SAFETY: the kernel takes an address and a number.
        gpu.time::<DeviceError>(repetitions, &[], |stream| unsafe { kernel.launch(extents, &params, stream) })
    };
    let (one, four) = (time(1).expect("it is right"), time(4).expect("it is right"));
    assert!(one > Duration::ZERO);
    assert!((four.as_secs_f64() / one.as_secs_f64() - 4.0).abs() < 0.1, "{one:?} {four:?}");
    // Recording executes nothing.
    assert_eq!(download(&gpu, &buffer), Ok(vec![1 << 5; 32]));
    // An error of what is recorded ends the recording, too.
    let refused = gpu.time::<DeviceError>(1, &[], |_| Err(DeviceError::Size { from: 1, to: 2 }));
    assert_eq!(refused, Err(DeviceError::Size { from: 1, to: 2 }));
    time(1).expect("it is right");
}

/// After a kernel has accessed what it must not, everything fails until the GPU is opened anew.
#[test]
fn a_gpu_that_failed_can_be_opened_anew() {
    let gpu = open(FAILING).expect("it is there");
    let buffer = upload(&gpu, &[1; 32]).expect("it fits");
    let _ = scale(&gpu, &buffer, 2, 5);
    let error = download(&gpu, &buffer).expect_err("the launch failed");
    let DeviceError::Failed { device, problem } = &error else { panic!("{error}") };
    assert_eq!(device, "GPU 5");
    assert!(
        problem.starts_with("an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)"),
        "{problem}"
    );
    assert!(upload(&gpu, &[1]).is_err());
    drop((gpu, buffer));
    let gpu = open(FAILING).expect("it is sound again");
    assert_eq!(download(&gpu, &upload(&gpu, &[9]).expect("it fits")), Ok(vec![9]));
}

#[test]
fn a_lost_gpu_is_an_error_and_memory_of_the_host_stays() {
    let gpu = open(LOST).expect("it is there");
    let words = [4, 5, 6];
    let failure = (0..10).find_map(|_| upload(&gpu, &words).err());
    assert!(matches!(failure, Some(DeviceError::Failed { .. })), "{failure:?}");
    assert_eq!(words, [4, 5, 6]);
    drop(gpu);
    assert!(matches!(open(LOST), Err(DeviceError::Failed { .. })));
}

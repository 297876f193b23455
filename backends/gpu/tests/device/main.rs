//! Programs compiled by the driver and run through the `Device` trait, on the mock driver: results are those of the interpreter.

use std::ffi::{c_char, c_uint};
use std::sync::OnceLock;
use std::time::Duration;

use tilewright_core::device::{
    Arguments, BufferArgument, CallError, CompileError, Device, DeviceBuffer, DeviceError, DeviceMemory,
    Executable,
};
use tilewright_core::interp;
use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::program::Program;
use tilewright_core::schedule::Trace;
use tilewright_core::target::{RunOptions, Target};
use tilewright_core::tensor::AnyTensor;
use tilewright_gpu::{Gpu, load_driver};

/// A GPU of which nothing is expected to fail, and one that is lost after four launches and copies.
const SOUND: usize = 0;
const LOST: usize = 1;

/// Opens a GPU of the mock driver.
fn open(number: usize) -> Gpu {
    static LOADED: OnceLock<libloading::Library> = OnceLock::new();
    LOADED.get_or_init(|| {
        let file = tilewright_mock_cuda::library().expect("the mock driver is built with the tests");
        load_driver(&file).expect("it is a library");
        // SAFETY: it is loaded already.
        let library = unsafe { libloading::Library::new(file) }.expect("it is a library");
        // SAFETY: the function has this type, and the string ends in a zero byte.
        let code = unsafe {
            let configure: libloading::Symbol<'_, unsafe extern "C" fn(*const c_char) -> c_uint> =
                library.get(b"tilewright_mock_configure\0").expect("the mock driver has it");
            configure(c"device=sm_80 device=sm_80,lose-after=4".as_ptr())
        };
        assert_eq!(code, 0);
        library
    });
    Gpu::open(number).expect("the GPU is there")
}

/// `y = a * s + a`, one thread for each element.
fn program(len: &str) -> Program {
    let dim = if len == "n" { "n, " } else { "" };
    let text = format!(
        "kernel scale({dim}s: f32, in a: f32[{len}], out y: f32[{len}]) {{
  for i in 0..{len} {{
    block y(v: spatial {len} = i) {{
      y[v] = a[v] * s + a[v]
    }}
  }}
}}"
    );
    let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
    let trace: Trace = "trace v1
%0 = get_block \"y\"
%1 = get_loops %0
%2, %3 = split %1, [none, 64]
bind %2, \"block_x\"
bind %3, \"thread_x\"
"
    .parse()
    .expect("a trace");
    let schedule = trace.replay(&program, Target::generic_gpu(), 0).expect("it can be scheduled");
    lower(schedule.program(), &LowerOptions::of(&Target::generic_gpu())).expect("it can be lowered")
}

fn compile(gpu: &Gpu, program: &Program) -> Box<dyn Executable> {
    let mut compiled = gpu.compile(&[program]);
    compiled.remove(0).unwrap_or_else(|error| panic!("{error}"))
}

const OPTIONS: fn() -> RunOptions = || RunOptions::with_threads(1);

/// The results by the interpreter, for a scalar of 2.5.
fn expected(program: &Program, dims: &[i64], a: &AnyTensor) -> Vec<u8> {
    let mut tensors = [a.clone(), AnyTensor::random(a.dtype(), &[a.bytes().len() / 4], 9).expect("a tensor")];
    interp::run(program, dims, &[scalar()], &mut tensors).expect("it runs");
    tensors[1].bytes().to_vec()
}

fn scalar() -> tilewright_core::expr::Constant {
    tilewright_core::expr::Constant::Float(2.5_f64.to_bits())
}

fn random(len: usize) -> AnyTensor {
    AnyTensor::random(tilewright_core::dtype::DType::F32, &[len], 5).expect("a tensor")
}

fn run(
    executable: &dyn Executable,
    dims: &[i64],
    buffers: &mut [BufferArgument<'_>],
) -> Result<(), CallError> {
    executable.run(&mut Arguments { dims, scalars: &[scalar()], buffers }, OPTIONS())
}

#[test]
fn tensors_of_the_host_are_copied() {
    let gpu = open(SOUND);
    let program = program("n");
    let executable = compile(&gpu, &program);
    for len in [0, 1, 63, 64, 1000] {
        let a = random(len);
        let mut y = vec![0; 4 * len];
        let dims = [len as i64];
        run(&*executable, &dims, &mut [BufferArgument::Read(a.bytes()), BufferArgument::Write(&mut y)])
            .expect("it is right");
        assert_eq!(y, expected(&program, &dims, &a), "{len}");
    }
}

#[test]
fn tensors_of_the_gpu_stay_there() {
    let gpu = open(SOUND);
    let program = program("100");
    let executable = compile(&gpu, &program);
    let a = random(100);
    let mut input = gpu.allocate(400).expect("it fits");
    gpu.upload(a.bytes(), input.as_mut_slice()).expect("it fits");
    let mut output = gpu.allocate(400).expect("it fits");
    run(
        &*executable,
        &[],
        &mut [
            BufferArgument::DeviceRead(input.as_slice()),
            BufferArgument::DeviceWrite(output.as_mut_slice()),
        ],
    )
    .expect("it is right");
    let mut y = vec![0; 400];
    gpu.download(output.as_slice(), &mut y).expect("it is there");
    assert_eq!(y, expected(&program, &[], &a));
    assert!(gpu.list(&program).expect("it compiles").contains(".visible .entry"));
}

#[test]
fn runs_are_timed() {
    let gpu = open(SOUND);
    let program = program("100");
    let executable = compile(&gpu, &program);
    let a = random(100);
    let mut y = vec![0; 400];
    let mut buffers = [BufferArgument::Read(a.bytes()), BufferArgument::Write(&mut y)];
    let mut arguments = Arguments { dims: &[], scalars: &[scalar()], buffers: &mut buffers };
    let time = executable.time(&mut arguments, OPTIONS(), 3).expect("it is right");
    assert!(time > Duration::ZERO);
    assert_eq!(y, expected(&program, &[], &a));
}

/// Several threads share an executable.
#[test]
fn threads_share_a_program() {
    let gpu = open(SOUND);
    let program = program("100");
    let executable = compile(&gpu, &program);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let a = random(100);
                let mut y = vec![0; 400];
                run(&*executable, &[], &mut [BufferArgument::Read(a.bytes()), BufferArgument::Write(&mut y)])
                    .expect("it is right");
                assert_eq!(y, expected(&program, &[], &a));
            });
        }
    });
}

/// Memory that no device knows.
struct Nowhere;

impl DeviceMemory for Nowhere {
    fn len(&self) -> usize {
        400
    }

    fn place(&self) -> String {
        "nowhere".to_owned()
    }
}

#[test]
fn wrong_arguments_are_errors_that_name_them() {
    let gpu = open(SOUND);
    let fixed = compile(&gpu, &program("100"));
    let a = vec![0; 400];
    let mut y = vec![0; 400];
    let error = run(&*fixed, &[], &mut [BufferArgument::Read(&a)]);
    assert_eq!(error, Err(CallError::Count { sort: "tensors", expected: 2, found: 1 }));
    let error = run(&*fixed, &[], &mut [BufferArgument::Read(&a[4..]), BufferArgument::Write(&mut y)]);
    assert_eq!(error, Err(CallError::Size { name: "a".into(), expected: 400, found: 396 }));
    let message = |error: Result<(), CallError>| error.expect_err("it is wrong").to_string();
    let error = run(&*fixed, &[], &mut [BufferArgument::Read(&a), BufferArgument::Read(&a)]);
    assert_eq!(message(error), "tensor `y` is written by the kernel, but was passed for reading only");
    let elsewhere = DeviceBuffer::new(Nowhere);
    let input = BufferArgument::DeviceRead(elsewhere.as_slice());
    let error = run(&*fixed, &[], &mut [input, BufferArgument::Write(&mut y)]);
    assert_eq!(message(error), "tensor `a` is in the memory of nowhere: copy it to GPU 0 first");
    let large = gpu.allocate(404).expect("it fits");
    let part = large.as_slice().part(4..404).expect("it is inside");
    let error = run(&*fixed, &[], &mut [BufferArgument::DeviceRead(part), BufferArgument::Write(&mut y)]);
    assert_eq!(message(error), "tensor `a` begins at an address that is no multiple of 16 bytes");
    let symbolic = compile(&gpu, &program("n"));
    let error = run(&*symbolic, &[-1], &mut [BufferArgument::Read(&a), BufferArgument::Write(&mut y)]);
    assert_eq!(error, Err(CallError::Dimension { name: "n".into(), value: -1 }));
    assert_eq!(y, vec![0; 400]);
}

#[test]
fn programs_that_cannot_be_emitted_are_errors() {
    let gpu = open(SOUND);
    let program: Program = "kernel add(in a: f32[4], out y: f32[4]) {
  for i in 0..4 {
    block y(v: spatial 4 = i) {
      y[v] = a[v] + 1.0
    }
  }
}"
    .parse()
    .expect("a program");
    let error = gpu.compile(&[&program]).remove(0).map(|_| ()).expect_err("it is not flat");
    assert!(matches!(error, CompileError::Unsupported { .. }), "{error}");
}

/// A GPU that is lost while a program runs is an error, and the host keeps what it had.
#[test]
fn a_lost_gpu_leaves_the_host_alone() {
    let gpu = open(LOST);
    let program = program("100");
    let executable = compile(&gpu, &program);
    let a = random(100);
    let mut y = vec![7; 400];
    let failure = (0..10).find_map(|_| {
        y.fill(7);
        run(&*executable, &[], &mut [BufferArgument::Read(a.bytes()), BufferArgument::Write(&mut y)]).err()
    });
    assert!(matches!(&failure, Some(CallError::Device(DeviceError::Failed { .. }))), "{failure:?}");
    assert_eq!(y, vec![7; 400]);
}

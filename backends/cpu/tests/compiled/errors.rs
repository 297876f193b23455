//! Refused programs and calls, and their messages.

use tilewright_core::device::{
    Arguments, BufferArgument, CallError, CompileError, Device, DeviceBuffer, DeviceError, DeviceMemory,
};
use tilewright_core::dtype::DType;
use tilewright_core::expr::Constant;
use tilewright_core::target::RunOptions;
use tilewright_core::tensor::AnyTensor;

use crate::support::{Call, compile, host, program};

const COPY: &str = "kernel copy(M, N, a: f32, in x: f32[M*N], out y: f32[M*N]) {
  for i in 0..M*N { y[i] = x[i] * a }
}";

fn floats(len: usize) -> AnyTensor {
    AnyTensor::zeros(DType::F32, &[len]).expect("a small tensor")
}

fn call(dims: &[i64], x: usize, y: usize) -> Result<(), CallError> {
    let program = program(COPY);
    let call = Call {
        dims: dims.to_vec(),
        scalars: vec![Constant::float(1.0)],
        tensors: vec![floats(x), floats(y)],
    };
    call.run(&program, &*compile(host(), &program), 1, true).map(drop)
}

#[test]
fn counts_sizes_and_dimensions_are_checked() {
    assert_eq!(call(&[2, 3], 6, 6), Ok(()));
    assert_eq!(call(&[2, 0], 0, 0), Ok(()));
    assert_eq!(call(&[2], 6, 6), Err(CallError::Count { sort: "dimensions", expected: 2, found: 1 }));
    assert_eq!(call(&[2, 3], 6, 5), Err(CallError::Size { name: "y".into(), expected: 24, found: 20 }));
    assert_eq!(call(&[2, -3], 6, 6), Err(CallError::Dimension { name: "N".into(), value: -3 }));
    let huge = call(&[i64::MAX / 2, 3], 6, 6).unwrap_err();
    assert!(matches!(&huge, CallError::Dimension { name, .. } if name == "x"), "{huge}");
    let large = call(&[1 << 40, 1 << 22], 6, 6).unwrap_err();
    assert!(matches!(&large, CallError::Dimension { name, .. } if name == "x"), "{large}");
}

#[test]
fn what_is_written_must_be_writable_and_aligned() {
    let program = program("kernel fill(out y: f32[4]) { y[lane<4>] = 1.0 }");
    let kernel = compile(host(), &program);
    let run = |buffer: BufferArgument<'_>| {
        kernel.run(
            &mut Arguments { dims: &[], scalars: &[], buffers: &mut [buffer] },
            RunOptions::with_threads(1),
        )
    };
    let mut memory = floats(5);
    let read_only = run(BufferArgument::Read(&memory.bytes()[..16])).unwrap_err();
    assert!(read_only.to_string().contains("`y` is written"), "{read_only}");
    let crooked = run(BufferArgument::Write(&mut memory.bytes_mut()[1..17])).unwrap_err();
    assert!(crooked.to_string().contains("`y` is not aligned"), "{crooked}");
    assert_eq!(run(BufferArgument::Write(&mut memory.bytes_mut()[4..])), Ok(()));
    assert_eq!(memory.to_f64_vec(), [0.0, 1.0, 1.0, 1.0, 1.0]);
}

#[test]
fn an_index_out_of_bounds_is_reported_and_reads_nothing_foreign() {
    let program = program(
        "kernel gather(V, N, in table: f32[V], in ids: i64[N], out y: f32[N]) {
           parallel for i in 0..N { y[i] = table[bounded(ids[i], 0..V)] }
         }",
    );
    let kernel = compile(host(), &program);
    for (bad, threads) in [(10, 1), (-1, 1), (i64::MAX, 2), (i64::MIN, 2)] {
        let mut ids: Vec<i64> = vec![1; 100];
        ids[57] = bad;
        let ids = AnyTensor::from_slice(&ids, &[100]).unwrap();
        let call =
            Call { dims: vec![10, 100], tensors: vec![floats(10), ids, floats(100)], ..Call::default() };
        let error = call.run(&program, &*kernel, threads, true).unwrap_err();
        assert_eq!(error, CallError::IndexOutOfBounds { value: bad, extent: 10, location: None });
    }
}

#[test]
fn a_bad_index_in_a_branch_not_taken_is_no_error() {
    let program = program(
        "kernel gather(N, in table: f32[4], in ids: i64[N*8], out y: f32[N*8]) {
           for i in 0..N {
             y[i*8 + lane<8>] = select(
               ids[i*8 + lane<8>] < 4, table[bounded(ids[i*8 + lane<8>], 0..4)], -1.0
             )
           }
         }",
    );
    let ids: Vec<i64> = (0..16).map(|n| n % 5).collect();
    let ids = AnyTensor::from_slice(&ids, &[16]).unwrap();
    let table = AnyTensor::random(DType::F32, &[4], 1).unwrap();
    Call { dims: vec![2], tensors: vec![table, ids, floats(16)], ..Call::default() }.check(&program);
}

#[test]
fn intermediates_too_large_to_address_are_an_error() {
    let program = program(
        "kernel large(M, N, out y: f32[1]) {
           buffer t: f32[M*N] global
           alloc t {
             t[0] = 1.0
             y[0] = t[0]
           }
         }",
    );
    let kernel = compile(host(), &program);
    for dims in [vec![1 << 40, 1 << 22], vec![1 << 30, 1 << 28]] {
        let error = Call { dims, tensors: vec![floats(1)], ..Call::default() }
            .run(&program, &*kernel, 1, true)
            .unwrap_err();
        assert!(error.to_string().contains("intermediates of `large`"), "{error}");
    }
}

#[test]
fn programs_of_other_levels_are_refused_beside_good_ones() {
    let good = program(COPY);
    let bad = program(
        "kernel two(M, N, in x: f32[M, N], out y: f32[M, N]) {
           for i in 0..M { for j in 0..N { y[i, j] = x[i, j] } }
         }",
    );
    let mut results = host().compile(&[&good, &bad, &good]);
    assert!(results.remove(0).is_ok());
    let error = results.remove(0).err().expect("refused");
    assert!(matches!(&error, CompileError::Unsupported { what, .. } if what.contains("`two`")), "{error}");
    let kernel = results.remove(0).expect("compiled beside a bad one");
    drop(results);
    let call = Call {
        dims: vec![2, 2],
        scalars: vec![Constant::float(2.0)],
        tensors: vec![AnyTensor::from_slice(&[1f32, 2.0, 3.0, 4.0], &[4]).unwrap(), floats(4)],
    };
    let result = call.run(&good, &*kernel, 1, true).unwrap();
    assert_eq!(result[1].to_f64_vec(), [2.0, 4.0, 6.0, 8.0], "the code outlives the others of its batch");
}

#[test]
fn a_program_that_leaves_its_buffers_ends_in_an_error() {
    let texts = [
        "kernel behind(N, in x: f32[N], out y: f32[N]) { for i in 0..N { y[i] = x[i + 1] } }",
        "kernel before(N, in x: f32[N], inout y: f32[N]) { for i in 0..N { if x[i] < 2.0 { y[i - 1] = x[i] } } }",
        "kernel lanes(N, in x: f32[N], inout y: f32[N]) { for i in 0..N { y[i + lane<4>] = x[i] } }",
        "kernel hidden(N, in x: f32[N], inout y: f32[N]) {
           parallel for i in 0..N { y[i] = select(x[i] < 2.0, x[i*2 + 1], 0.0) }
         }",
        "kernel strided(N, in x: f32[N], inout y: f32[N]) { for i in 0..N { y[i*N] = x[i] } }",
    ];
    for text in texts {
        let program = program(text);
        let kernel = compile(host(), &program);
        for (threads, at_end) in [(1, true), (1, false), (2, true), (2, false)] {
            let call = Call { dims: vec![5], tensors: vec![floats(5), floats(5)], ..Call::default() };
            let error = call.run(&program, &*kernel, threads, at_end).expect_err(text);
            assert!(matches!(error, CallError::IndexOutOfBounds { extent: 5, .. }), "{text}: {error}");
        }
    }
}

/// Memory of a device that is none.
struct Foreign;

impl DeviceMemory for Foreign {
    fn len(&self) -> usize {
        16
    }

    fn place(&self) -> String {
        "another device".to_owned()
    }
}

#[test]
fn buffers_of_the_device_are_arguments_and_those_of_others_are_refused() {
    let program =
        program("kernel double(in x: f32[4], out y: f32[4]) { y[lane<4>] = x[lane<4>] + x[lane<4>] }");
    let kernel = compile(host(), &program);
    let run = |buffers: &mut [BufferArgument<'_>]| {
        kernel.run(&mut Arguments { dims: &[], scalars: &[], buffers }, RunOptions::with_threads(1))
    };
    let values = AnyTensor::from_slice(&[1f32, 2.0, 3.0, 4.0], &[4]).unwrap();
    // Both tensors are parts of one buffer, as in the arena of a whole model.
    let mut arena = host().allocate(32).unwrap();
    let (x, y) = arena.as_mut_slice().split_at(16).expect("it is inside");
    assert_eq!(host().upload(&values.bytes()[..8], y), Err(DeviceError::Size { from: 8, to: 16 }));
    host().upload(values.bytes(), x).unwrap();
    let (x, y) = arena.as_mut_slice().split_at(16).expect("it is inside");
    run(&mut [BufferArgument::DeviceRead(x.as_slice()), BufferArgument::DeviceWrite(y)]).unwrap();
    let mut found = floats(4);
    host().download(arena.as_slice().part(16..32).expect("it is inside"), found.bytes_mut()).unwrap();
    assert_eq!(found.to_f64_vec(), [2.0, 4.0, 6.0, 8.0]);

    let read_only = arena.as_slice().part(16..32).expect("it is inside");
    let error = run(&mut [BufferArgument::from(&values), BufferArgument::DeviceRead(read_only)]).unwrap_err();
    assert!(error.to_string().contains("`y` is written"), "{error}");
    let mut foreign = DeviceBuffer::new(Foreign);
    assert!(matches!(
        host().download(foreign.as_slice(), found.bytes_mut()),
        Err(DeviceError::OtherDevice { .. })
    ));
    let y = BufferArgument::DeviceWrite(foreign.as_mut_slice());
    let error = run(&mut [BufferArgument::from(&values), y]).unwrap_err();
    assert!(error.to_string().contains("`y` is in the memory of another device"), "{error}");
}

//! Kernels from programs that are made at run time: called, tuned and refused like those that are written in Rust.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::{Arc, Barrier};

use tilewright::core::device::{BufferArgument, CallError};
use tilewright::core::dtype::DType;
use tilewright::core::expr::Constant;
use tilewright::core::program::{Param, Program, VariableKind};
use tilewright::core::tensor::AnyTensor;
use tilewright::kernel::explain;
use tilewright::tuning::Tuner;
use tilewright::{Error, Kernel, Source};

/// Counts the allocations of each thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every request goes to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that ends has no count any more.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(address, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// y = scale · A·x, with symbolic sizes.
const PRODUCT: &str = "kernel product(M, K, scale: f32, in a: f32[M, K], in x: f32[K], out y: f32[M]) {
  buffer t: f32[M] global
  for i in 0..M {
    for k in 0..K {
      block t(vi: spatial M = i, vk: reduce K = k) {
        init {
          t[vi] = 0.0
        }
        t[vi] = t[vi] + a[vi, vk] * x[vk]
      }
    }
  }
  for i1 in 0..M {
    block y(v: spatial M = i1) {
      y[v] = scale * t[v]
    }
  }
}
";

fn kernel(text: &str) -> Kernel {
    let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}"));
    Kernel::from_program(program).unwrap_or_else(|error| panic!("{error}"))
}

/// Small whole numbers, whose sums are exact.
fn whole(len: usize, seed: usize) -> Vec<f32> {
    (0..len).map(|position| ((position * 7 + seed) % 5) as f32 - 2.0).collect()
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

/// The result of [`PRODUCT`], computed here.
fn expected(m: usize, k: usize) -> Vec<f32> {
    let (a, x) = (whole(m * k, 1), whole(k, 3));
    (0..m).map(|i| 2.0 * (0..k).fold(0.0, |sum, j| sum + a[i * k + j] * x[j])).collect()
}

fn call(kernel: &Kernel, m: usize, k: usize) -> Result<Vec<f32>, Error> {
    let (a, x) = (bytes(&whole(m * k, 1)), bytes(&whole(k, 3)));
    let mut y = AnyTensor::zeros(DType::F32, &[m]).expect("it is small");
    let mut buffers =
        [BufferArgument::Read(&a), BufferArgument::Read(&x), BufferArgument::Write(y.bytes_mut())];
    kernel.run(&[m as i64, k as i64], &[Constant::float(2.0)], &mut buffers)?;
    Ok(y.to_f64_vec().into_iter().map(|value| value as f32).collect())
}

#[test]
fn results_are_those_of_the_program_for_every_shape() {
    let kernel = kernel(PRODUCT);
    assert_eq!((kernel.name(), kernel.dims()), ("product", vec!["M", "K"]));
    for (m, k) in [(1, 1), (3, 17), (16, 16), (31, 1), (5, 0), (0, 3)] {
        assert_eq!(call(&kernel, m, k).expect("it can be called"), expected(m, k), "M = {m}, K = {k}");
        let (a, x) = (bytes(&whole(m * k, 1)), bytes(&whole(k, 3)));
        let mut y = vec![0; m * 4];
        let mut buffers = [BufferArgument::Read(&a), BufferArgument::Read(&x), BufferArgument::Write(&mut y)];
        let dims = [m as i64, k as i64];
        kernel.reference(&dims, &[Constant::float(2.0)], &mut buffers).expect("it can be interpreted");
        assert_eq!(y, bytes(&expected(m, k)), "interpreted, M = {m}, K = {k}");
    }
    let explained = explain(&kernel, &[("K", 17), ("M", 3)]).expect("it was called");
    assert_eq!((explained.kernel.as_str(), explained.source), ("product", Source::Default));
}

#[test]
fn threads_call_one_kernel_at_once() {
    let (kernel, start) = (kernel(PRODUCT), Barrier::new(4));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (kernel, start) = (&kernel, &start);
            scope.spawn(move || {
                start.wait();
                for round in 0..8 {
                    let (m, k) = (1 + (thread + round) % 3, 4);
                    assert_eq!(call(kernel, m, k).expect("it can be called"), expected(m, k));
                }
            });
        }
    });
}

#[test]
fn a_call_with_buffers_of_the_caller_allocates_nothing() {
    let kernel = kernel(PRODUCT);
    let (m, k) = (6, 8);
    let (a, x) = (bytes(&whole(m * k, 1)), bytes(&whole(k, 3)));
    let mut y = AnyTensor::zeros(DType::F32, &[m]).expect("it is small");
    let mut run = || {
        let mut buffers =
            [BufferArgument::Read(&a), BufferArgument::Read(&x), BufferArgument::Write(y.bytes_mut())];
        let dims = [m as i64, k as i64];
        kernel.run(&dims, &[Constant::float(2.0)], &mut buffers).expect("it can be called");
    };
    run();
    let before = ALLOCATIONS.get();
    run();
    assert_eq!(ALLOCATIONS.get() - before, 0);
}

#[test]
fn a_program_from_a_graph_can_be_tuned() {
    let kernel = kernel(PRODUCT);
    let directory = tempfile::tempdir().expect("a disk");
    let mut tuner = Tuner::new().records(directory.path()).trials(4).progress(false);
    let tuned = tuner.tune(&kernel, &[("M", 16), ("K", 16)]).expect("it can be tuned");
    assert!(tuned.record.is_some_and(|record| record.kernel == "product"));
    assert_eq!(call(&kernel, 16, 16).expect("it can be called"), expected(16, 16));
}

#[test]
fn programs_that_cannot_be_kernels_are_refused() {
    let refusal = |program: Program| match Kernel::from_program(program) {
        Err(Error::Malformed { kernel, problem }) => (kernel, problem),
        other => panic!("{other:?}"),
    };
    let text = "kernel one(out y: f32[4]) {\n  for i in 0..4 {\n    y[i] = 0.0\n  }\n}\n";
    let (kernel, problem) = refusal(text.parse().expect("it is a program of another level"));
    assert!(kernel == "one" && problem.contains("block"), "{problem}");

    let mut twice: Program = PRODUCT.parse().expect("it is a program");
    let again = twice.add_variable("M", VariableKind::Dim);
    Arc::make_mut(&mut twice.params).insert(1, Param::Dim(again));
    let (_, problem) = refusal(twice);
    assert_eq!(problem, "dimension 1 is named `M`, as one before it");
}

#[test]
fn arguments_that_do_not_fit_are_refused() {
    let kernel = kernel(PRODUCT);
    let run = |dims: &[i64], m: usize| {
        let (a, x, mut y) = (bytes(&whole(12, 1)), bytes(&whole(4, 3)), vec![0; m * 4]);
        let mut buffers = [BufferArgument::Read(&a), BufferArgument::Read(&x), BufferArgument::Write(&mut y)];
        kernel.run(dims, &[Constant::float(2.0)], &mut buffers).expect_err("it does not fit").to_string()
    };
    assert_eq!(run(&[3], 3), "2 dimensions expected, 1 given");
    assert_eq!(run(&[3, -4], 3), "dimension `K` = -4 is out of range");
    assert_eq!(run(&[3, 4], 2), "tensor `y` needs 12 bytes for its shape, 8 given");
    let text = run(&[i64::MAX, i64::MAX], 3);
    assert!(text.ends_with("does not fit into memory"), "{text}");
    let wrong = explain(&kernel, &[("M", 3)]).expect_err("`K` is missing").to_string();
    assert_eq!(wrong, "kernel `product` needs a value for each of M, K; `K` is missing");
    let error = CallError::Count { sort: "tensors", expected: 3, found: 0 };
    assert_eq!(
        kernel.reference(&[1, 1], &[], &mut []).expect_err("there is none").to_string(),
        error.to_string()
    );
}

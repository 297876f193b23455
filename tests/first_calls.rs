//! First calls of new shapes: they run the version at hand, and better ones that are made beside them take its place.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tilewright::background;
use tilewright::core::device::{
    BufferArgument, CompileError, Device, DeviceBuffer, DeviceError, DeviceSlice, DeviceSliceMut, Executable,
};
use tilewright::core::dtype::DType;
use tilewright::core::program::Program;
use tilewright::core::target::{RunOptions, Target};
use tilewright::devices::DeviceId;
use tilewright::prelude::*;
use tilewright::search::records::{Measurement, Outcome, Provenance, Record, TunedFor};
use tilewright::search::schedule_by_default;
use tilewright::{Kernel, Source, devices};

/// Defines a kernel of a name, because versions are kept with it.
macro_rules! prefix_products {
    ($($name:ident),*) => {$(
        /// Products of a query and the keys before a length, scaled by the row.
        #[tensor_kernel]
        fn $name(query: &Tensor<f32, D>, keys: &Tensor<f32, L, D>) -> Tensor<f32, L> {
            let mut y = Tensor::zeros();
            for l in 0..L {
                for d in 0..D {
                    y[[l]] += query[[d]] * keys[[l, d]];
                }
            }
            y
        }
    )*};
}

prefix_products!(replaced, waited_for, shared, prepared, unlucky, dropped, busy, impatient);

const WIDTH: usize = 12;

/// The mode of the background and the limit of shapes are those of the process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Defines a kernel of a name. It has three blocks; choosing a good schedule for it takes long.
macro_rules! relative_products {
    ($($name:ident),*) => {$(
        /// A product, less the largest number of each row.
        #[tensor_kernel]
        fn $name(a: &Tensor<f32, M, K>, b: &Tensor<f32, K, N>) -> Tensor<f32, M, N> {
            let mut product: Tensor<f32, M, N> = Tensor::zeros();
            for m in 0..M {
                for n in 0..N {
                    for k in 0..K {
                        product[[m, n]] += a[[m, k]] * b[[k, n]];
                    }
                }
            }
            let mut largest: Tensor<f32, M> = Tensor::full(f32::NEG_INFINITY);
            for m in 0..M {
                for n in 0..N {
                    largest[[m]] = largest[[m]].max(product[[m, n]]);
                }
            }
            let mut y = Tensor::zeros();
            for m in 0..M {
                for n in 0..N {
                    y[[m, n]] = product[[m, n]] - largest[[m]];
                }
            }
            y
        }
    )*};
}

relative_products!(little, much, recorded);

/// Small integers: every order of additions gives the same sum.
fn arguments(length: usize) -> (Tensor<f32, 1>, Tensor<f32, 2>) {
    let query = Tensor::from_fn([WIDTH], |[d]| (d % 5) as f32 - 2.0).expect("it is small");
    (query, Tensor::from_fn([length, WIDTH], |[l, d]| ((3 * l + d) % 7) as f32 - 3.0).expect("it is small"))
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

fn current(kernel: &Kernel, length: usize) -> Option<Source> {
    kernel.current_source(&[WIDTH as i64, length as i64])
}

#[test]
fn a_new_length_runs_what_is_at_hand_until_its_own_version_is_made() {
    let _alone = alone();
    background::set_enabled(true);
    let kernel = replaced::kernel();
    assert_eq!(current(kernel, 1), None);
    for length in [4, 1, 5, 17, 33] {
        let (query, keys) = arguments(length);
        let expected = replaced::reference(&query, &keys).expect("it fits");
        assert_eq!(replaced(&query, &keys).expect("it fits"), expected);
        if length == 4 {
            assert_eq!(current(kernel, length), Some(Source::Default), "the first one waits for its own");
        }
        background::finish();
        assert_eq!(current(kernel, length), Some(Source::Default), "{length}");
        assert_eq!(replaced(&query, &keys).expect("it fits"), expected, "after the exchange");
    }
}

#[test]
fn without_background_every_first_call_waits_for_its_own_version() {
    let _alone = alone();
    background::set_enabled(false);
    for length in [4, 1, 5] {
        let (query, keys) = arguments(length);
        let expected = waited_for::reference(&query, &keys).expect("it fits");
        assert_eq!(waited_for(&query, &keys).expect("it fits"), expected);
        assert_eq!(current(waited_for::kernel(), length), Some(Source::Default));
    }
    background::set_enabled(true);
}

#[test]
fn threads_call_while_versions_are_exchanged() {
    const THREADS: usize = 4;
    let _alone = alone();
    background::set_enabled(true);
    let start = Barrier::new(THREADS);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                for round in 0..60 {
                    let (query, keys) = arguments(1 + (7 * thread + round) % 20);
                    let expected = shared::reference(&query, &keys).expect("it fits");
                    assert_eq!(shared(&query, &keys).expect("it fits"), expected);
                }
            });
        }
    });
    background::finish();
    assert!((1..=20).all(|length| current(shared::kernel(), length) == Some(Source::Default)));
}

#[test]
fn prepared_shapes_have_their_own_versions_at_once() {
    let _alone = alone();
    let kernel = prepared::kernel();
    let shape = |length: i64| [("L", length), ("D", WIDTH as i64)];
    kernel.prepare(&[&shape(3), &shape(8), &shape(21)]).expect("it can be compiled");
    for length in [3, 8, 21] {
        assert_eq!(current(kernel, length), Some(Source::Default), "{length}");
    }
    let error = kernel.prepare(&[&[("L", 3)]]).expect_err("`D` is missing").to_string();
    assert!(error.contains("`D` is missing"), "{error}");
    let error = kernel.prepare(&[&shape(-1), &shape(2)]).expect_err("a negative length").to_string();
    assert!(error.contains("-1"), "{error}");
    assert_eq!(current(kernel, 2), Some(Source::Default), "the other shape is prepared nevertheless");
}

/// The CPU with another compiler. The compiler panics if `panics` is set. On the background thread, it waits for `held`.
struct Unlucky {
    cpu: Arc<dyn Device>,
    panics: AtomicBool,
    held: Mutex<()>,
}

impl Unlucky {
    fn new() -> Arc<Self> {
        let cpu = devices::default_device().expect("a CPU");
        Arc::new(Unlucky { cpu, panics: false.into(), held: Mutex::new(()) })
    }
}

/// Calls a kernel on a device and compares the result with the expected one.
fn call_on(device: DeviceId, kernel: &Kernel, length: usize) {
    let (query, keys) = arguments(length);
    let expected = unlucky::reference(&query, &keys).expect("it fits");
    let (query, keys, mut y) = (bytes(query.as_slice()), bytes(keys.as_slice()), vec![0; 4 * length]);
    let mut buffers =
        [BufferArgument::Read(&query), BufferArgument::Read(&keys), BufferArgument::Write(&mut y)];
    kernel.run_on(device, &[WIDTH as i64, length as i64], &[], &mut buffers).expect("it can be called");
    assert_eq!(y, bytes(expected.as_slice()));
}

impl Device for Unlucky {
    fn target(&self) -> &Target {
        self.cpu.target()
    }

    fn label(&self) -> &str {
        self.cpu.label()
    }

    fn compile(&self, programs: &[&Program]) -> Vec<Result<Box<dyn Executable>, CompileError>> {
        assert!(!self.panics.load(Ordering::Relaxed), "the compiler panics on purpose");
        if thread::current().name() == Some("tilewright-compile") {
            drop(self.held.lock().unwrap_or_else(PoisonError::into_inner));
        }
        self.cpu.compile(programs)
    }

    fn list(&self, program: &Program) -> Result<String, CompileError> {
        self.cpu.list(program)
    }

    fn allocate(&self, bytes: usize) -> Result<DeviceBuffer, DeviceError> {
        self.cpu.allocate(bytes)
    }

    fn upload(&self, from: &[u8], to: DeviceSliceMut<'_>) -> Result<(), DeviceError> {
        self.cpu.upload(from, to)
    }

    fn download(&self, from: DeviceSlice<'_>, to: &mut [u8]) -> Result<(), DeviceError> {
        self.cpu.download(from, to)
    }

    fn measure_peak(&self, dtype: DType, options: RunOptions, window: Duration) -> Option<f64> {
        self.cpu.measure_peak(dtype, options, window)
    }
}

#[test]
fn a_panic_beside_calls_costs_nothing_but_the_better_version() {
    let _alone = alone();
    background::set_enabled(true);
    let device = Unlucky::new();
    let id = devices::add("unlucky", Arc::clone(&device) as Arc<dyn Device>);
    let kernel = unlucky::kernel();
    let call = |length: usize| call_on(id, kernel, length);
    call(4);
    // The version for all lengths is made before the compiler panics.
    background::finish();
    device.panics.store(true, Ordering::Relaxed);
    for length in [5, 6, 5] {
        call(length);
        background::finish();
    }
    let at = |length: i64| kernel.current_source_on(id, &[WIDTH as i64, length]);
    assert_eq!(
        [at(4), at(5), at(6)],
        [Some(Source::Default), Some(Source::Symbolic), Some(Source::Symbolic)]
    );
    device.panics.store(false, Ordering::Relaxed);
    call(7);
    background::finish();
    assert_eq!(at(7), Some(Source::Default), "the thread goes on after a panic");
}

#[test]
fn calls_that_have_taken_long_do_not_wait_for_the_thread_beside_them() {
    const LENGTH: usize = 20_000;
    let _alone = alone();
    background::set_enabled(true);
    let device = Unlucky::new();
    let id = devices::add("held", Arc::clone(&device) as Arc<dyn Device>);
    for kernel in [busy::kernel(), impatient::kernel()] {
        call_on(id, kernel, 4);
    }
    background::finish();
    let held = device.held.lock().unwrap_or_else(PoisonError::into_inner);
    // The thread waits with this version, and does not come to the next one.
    call_on(id, busy::kernel(), 5);
    let source = || impatient::kernel().current_source_on(id, &[WIDTH as i64, LENGTH as i64]);
    call_on(id, impatient::kernel(), LENGTH);
    assert_eq!(source(), Some(Source::Symbolic), "the first call runs the version at hand");
    let calls = (0..100_000).take_while(|_| {
        call_on(id, impatient::kernel(), LENGTH);
        source() == Some(Source::Symbolic)
    });
    assert!(calls.count() < 100_000, "no call made the own version");
    assert_eq!(source(), Some(Source::Default));
    drop(held);
    background::finish();
}

/// Calls a kernel of `relative_products` on a device, compares the result with the expected one, and gives the source of its schedule.
fn source_of_first_call(device: DeviceId, kernel: &Kernel, size: usize) -> Option<Source> {
    let matrix = |number: &dyn Fn(usize, usize) -> usize| -> Vec<f32> {
        let places = (0..size).flat_map(|row| (0..size).map(move |column| (row, column)));
        places.map(|(row, column)| number(row, column) as f32).collect()
    };
    let a = bytes(&matrix(&|m, k| (m + k) % 2));
    let b = bytes(&matrix(&|k, n| n * n % 5 * (k % 2)));
    let mut y = vec![0; a.len()];
    let mut buffers = [BufferArgument::Read(&a), BufferArgument::Read(&b), BufferArgument::Write(&mut y)];
    let dims = [size as i64; 3];
    kernel.run_on(device, &dims, &[], &mut buffers).expect("it can be called");
    // An odd row has ones where `b` has zeros alone; an even one meets each column's number as often as there are odd rows of `b`.
    let product = matrix(&|m, n| (1 - m % 2) * (n * n % 5) * (size / 2));
    let rows = product.chunks(size);
    let expected: Vec<f32> = rows.flat_map(|row| row.iter().map(|number| number - row[2])).collect();
    assert_eq!(y, bytes(&expected), "{size}");
    kernel.current_source_on(device, &dims)
}

#[test]
fn a_call_of_much_work_begins_with_its_own_version() {
    let _alone = alone();
    background::set_enabled(true);
    let device = Unlucky::new();
    let id = devices::add("held for much work", Arc::clone(&device) as Arc<dyn Device>);
    let held = device.held.lock().unwrap_or_else(PoisonError::into_inner);
    // Neither kernel has a version yet, so that the number of points alone decides.
    assert_eq!(source_of_first_call(id, little::kernel(), 4), Some(Source::Symbolic));
    assert_eq!(source_of_first_call(id, much::kernel(), 800), Some(Source::Default));
    drop(held);
    background::finish();
}

#[test]
fn a_first_call_does_not_wait_for_the_comparison_with_a_record() {
    const SIZE: usize = 4;
    let _alone = alone();
    background::set_enabled(true);
    let (kernel, context) = (recorded::kernel(), tilewright::run_context().expect("a good environment"));
    let program = kernel.program_for(&[8; 3]).expect("the dimensions fit");
    tilewright::use_record(Record {
        kernel: kernel.name().to_owned(),
        program: kernel.hash().expect("a good definition"),
        shape: kernel.shape(&[8; 3]),
        target: TunedFor::of(&context),
        trace: schedule_by_default(&program, context).into_parts().1,
        outcome: Outcome::Measured(Measurement {
            median_ns: 1.0,
            spread: 0.0,
            max_rel_err: 0.0,
            is_confirmed: true,
        }),
        provenance: Provenance::default(),
    })
    .expect("a good record");
    let device = Unlucky::new();
    let id = devices::add("held for a record", Arc::clone(&device) as Arc<dyn Device>);
    let held = device.held.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(source_of_first_call(id, kernel, SIZE), Some(Source::Symbolic));
    drop(held);
    background::finish();
    let source = kernel.current_source_on(id, &[SIZE as i64; 3]).expect("it was called");
    assert!(matches!(source, Source::Nearest { .. } | Source::Default), "{source}");
}

#[test]
fn a_kernel_that_is_dropped_takes_its_work_along() {
    let _alone = alone();
    background::set_enabled(true);
    let program = dropped::kernel().program().expect("a good definition").clone();
    for _ in 0..4 {
        let kernel = Kernel::from_program(program.clone()).expect("a good program");
        for length in 1..5i64 {
            let (query, keys) = (vec![0; WIDTH * 4], vec![0; WIDTH * 4 * length as usize]);
            let mut y = vec![1; 4 * length as usize];
            let mut buffers =
                [BufferArgument::Read(&query), BufferArgument::Read(&keys), BufferArgument::Write(&mut y)];
            kernel.run(&[WIDTH as i64, length], &[], &mut buffers).expect("it can be called");
            assert!(y.iter().all(|byte| *byte == 0));
        }
    }
    background::finish();
}

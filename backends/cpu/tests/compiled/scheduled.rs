//! Random schedules of kernels with symbolic dimensions, compiled once and called with many sizes, also of nothing.
//! `TILEWRIGHT_CASES` says how many schedules of each kernel.

use tilewright_core::lower::{LowerOptions, lower};

use crate::execute::{Arguments, agree, with_parts};
use crate::kernels::{ALL, parse};
use crate::random_schedule::random_schedule;
use crate::recurrences::RECURRENCES;
use crate::support::{Call, compile, host};

fn cases() -> u64 {
    std::env::var("TILEWRIGHT_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(12)
}

#[test]
fn symbolic_kernels_compute_what_the_definition_says_for_every_size() {
    for (name, text, all_sizes) in ALL.iter().chain(RECURRENCES) {
        for seed in 0..cases() {
            let unscheduled = with_parts(parse(text), seed);
            let has_parts = unscheduled.buffer_params().any(|(id, _)| unscheduled.strides(id).is_some());
            let schedule = random_schedule(unscheduled.clone(), seed, 4 + seed as usize % 24);
            let context = || format!("{name}, seed {seed}\n{}\n{}", schedule.trace(), schedule.program());
            let flat = lower(schedule.program(), &LowerOptions::default())
                .unwrap_or_else(|error| panic!("{error}\n{}", context()));
            let kernel = compile(host(), &flat);
            for sizes in all_sizes.iter().filter(|sizes| !has_parts || !sizes.contains(&0)) {
                let arguments = Arguments::random(&unscheduled, sizes, seed);
                let dims: Vec<_> =
                    unscheduled.dims().map(|(var, _)| var).zip(sizes.iter().copied()).collect();
                let expected = arguments
                    .without_dims()
                    .run(&unscheduled.bind_dims(&dims), None)
                    .unwrap_or_else(|error| panic!("{sizes:?}: {error}\n{}", context()));
                let Arguments { dims, scalars, buffers } = arguments;
                let call = Call { dims, scalars, tensors: buffers };
                for threads in [1, 2] {
                    let found = call
                        .run(&flat, &*kernel, threads, threads == 1)
                        .unwrap_or_else(|error| panic!("{sizes:?}: {error}\n{}\n{flat}", context()));
                    agree(&found, &expected)
                        .unwrap_or_else(|problem| panic!("{sizes:?}: {problem}\n{}\n{flat}", context()));
                }
            }
        }
    }
}

/// Private copies of a histogram, updated by several threads at once; a place that does not exist is still an error.
#[test]
fn threads_update_private_copies() {
    use tilewright_core::device::CallError;
    use tilewright_core::schedule::Schedule;
    use tilewright_core::target::Target;
    use tilewright_core::tensor::AnyTensor;

    let unscheduled = parse(
        "kernel histogram(in x: i32[1003], inout h: i32[7]) {
           for i in 0..1003 {
             block h(vi: ordered 1003 = i) {
               h[bounded(x[vi] as i64, 0..7)] = h[bounded(x[vi] as i64, 0..7)] + 1i32
             }
           }
         }",
    );
    let mut schedule = Schedule::new(unscheduled.clone(), std::sync::Arc::new(Target::generic_cpu()), 0);
    let block = schedule.get_block("h").expect("it is there");
    let whole = schedule.get_loops(block).expect("it is there")[0];
    let parts = schedule.split(whole, &[Some(4), None]).expect("any loop");
    schedule.privatize(block, parts[0]).expect("they are integers");
    schedule.parallel(parts[0]).expect("each has a copy of its own");
    let flat = lower(schedule.program(), &LowerOptions::default()).expect("it is legal");
    let kernel = compile(host(), &flat);
    let mut places: Vec<i32> = (0..1003).map(|i| i * i % 7).collect();
    let call = |places: &[i32]| Call {
        tensors: vec![
            AnyTensor::from_slice(places, &[1003]).expect("it fits"),
            AnyTensor::from_slice(&[5, 0, 0, 0, 0, 0, -9], &[7]).expect("it fits"),
        ],
        ..Call::default()
    };
    call(&places).check(&flat);
    let mut expected = call(&places).tensors;
    tilewright_core::interp::run(&unscheduled, &[], &[], &mut expected).expect("all places exist");
    for threads in [1, 2, 4] {
        let found = call(&places).run(&flat, &*kernel, threads, true).expect("all places exist");
        assert_eq!(found[1], expected[1], "{threads} threads");
    }
    places[1002] = 7;
    let error = call(&places).run(&flat, &*kernel, 2, true).expect_err("there is no place 7");
    assert!(matches!(error, CallError::IndexOutOfBounds { value: 7, extent: 7, .. }), "{error}");
}

/// Threads update one histogram in single steps, of integers of every size.
#[test]
fn threads_update_in_single_steps() {
    use tilewright_core::dtype::DType;
    use tilewright_core::schedule::Schedule;
    use tilewright_core::target::Target;
    use tilewright_core::tensor::AnyTensor;

    for dtype in ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"] {
        for combined in ["$h + $x", "max($h, $x)", "min($h, $x)"] {
            let place = "bounded((ids[vi] % 7u32) as i64, 0..7)";
            let update = combined.replace("$h", &format!("h[{place}]")).replace("$x", "x[vi]");
            let unscheduled = parse(&format!(
                "kernel histogram(in ids: u32[1003], in x: {dtype}[1003], inout h: {dtype}[7]) {{
                   for i in 0..1003 {{ block h(vi: ordered 1003 = i) {{ h[{place}] = {update} }} }}
                 }}"
            ));
            let mut schedule =
                Schedule::new(unscheduled.clone(), std::sync::Arc::new(Target::generic_cpu()), 0);
            let block = schedule.get_block("h").expect("it is there");
            schedule.update_atomically(block).expect("they are integers");
            let whole = schedule.get_loops(block).expect("it is there")[0];
            let parts = schedule.split(whole, &[Some(4), None]).expect("any loop");
            schedule.parallel(parts[0]).expect("each update is one step");
            let flat = lower(schedule.program(), &LowerOptions::default()).expect("it is legal");
            let kernel = compile(host(), &flat);
            let random = |dtype, len, seed| AnyTensor::random(dtype, &[len], seed).expect("it fits");
            let element: DType = dtype.parse().expect("a type");
            let tensors = vec![random(DType::U32, 1003, 4), random(element, 1003, 5), random(element, 7, 6)];
            let call = Call { tensors, ..Call::default() };
            let mut expected = call.tensors.clone();
            tilewright_core::interp::run(&unscheduled, &[], &[], &mut expected).expect("all places exist");
            for threads in [1, 2, 4] {
                let found = call.run(&flat, &*kernel, threads, true).expect("all places exist");
                assert_eq!(found[2], expected[2], "{threads} threads, {dtype}, {combined}");
            }
        }
    }
}

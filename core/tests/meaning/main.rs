//! Random legal traces leave a program's meaning unchanged, at every level.
//!
//! Kernels compute in integers, where the order of a reduction does not matter, so that results are
//! compared exactly. `TILEWRIGHT_CASES` sets the number of traces for each kernel.

mod async_copies;
#[path = "../support/dot_products.rs"]
mod dot_products;
mod kernels;
mod pieces;
mod pipeline;
#[path = "../support/recurrences.rs"]
mod recurrences;
mod steps;
mod tensorize;

use std::collections::BTreeSet;
use std::sync::Arc;

use kernels::{KERNELS, Kernel};
use tilewright_core::interp::{Interpreter, Options};
use tilewright_core::lower::{LowerError, LowerOptions, lower, lower_to_loops};
use tilewright_core::program::Program;
use tilewright_core::schedule::{Instruction, Rng, Schedule};
use tilewright_core::target::Target;
use tilewright_core::tensor::AnyTensor;

/// The tensors after executing a program on a kernel's arguments.
fn execute(
    program: &Program,
    dims: &[i64],
    arguments: &[AnyTensor],
    parallel_order_seed: Option<u64>,
) -> Result<Vec<AnyTensor>, String> {
    let mut buffers = arguments.to_vec();
    let interpreter = Interpreter::new(program).map_err(|error| error.to_string())?;
    let options = Options { parallel_order_seed };
    interpreter.run(options, dims, &[], &mut buffers).map_err(|error| error.to_string())?;
    Ok(buffers)
}

/// Why a program does not do what the kernel does, if it does not.
fn disagreement(kernel: &Kernel, program: &Program, seed: u64) -> Option<String> {
    for dims in kernel.dims {
        let arguments = kernel.arguments(dims);
        let expected = execute(&kernel.program(), dims, &arguments, None)
            .unwrap_or_else(|error| panic!("{error} in kernel {}", kernel.name));
        for order in [None, Some(seed)] {
            match execute(program, dims, &arguments, order) {
                Err(error) => return Some(format!("{error} with dimensions {dims:?}, order {order:?}")),
                Ok(found) if found != expected => {
                    return Some(format!("another result with dimensions {dims:?}, order {order:?}"));
                }
                Ok(_) => {}
            }
        }
    }
    None
}

/// Applies random primitives; each that is refused must leave the schedule as it was.
fn random_schedule(kernel: &Kernel, seed: u64) -> Schedule {
    let mut schedule = Schedule::new(kernel.program(), Arc::new(Target::generic_cpu()), seed);
    let mut random = Rng::new(seed);
    for _ in 0..2 + random.below(12) {
        let before = schedule.program().clone();
        if steps::random_step(&mut schedule, &mut random).is_err() {
            assert!(*schedule.program() == before, "a refused primitive changed the program (seed {seed})");
        }
    }
    if random.below(5) == 0 {
        let _refused = steps::random_binding(&mut schedule, &mut random);
    }
    schedule
}

/// Compares a schedule of a kernel with the kernel, before and after lowering.
fn check_schedule(kernel: &Kernel, schedule: &Schedule, seed: u64) {
    let fail = |level: &str, program: &Program, what: &str| -> ! {
        let (trace, scheduled) = (schedule.trace(), schedule.program());
        panic!("kernel {}, seed {seed}, {level}: {what}\n{trace}\n{scheduled}\n{program}", kernel.name)
    };
    if let Some(what) = disagreement(kernel, schedule.program(), seed) {
        fail("blocks", schedule.program(), &what);
    }
    let options = LowerOptions::default();
    for (level, lowered) in [
        ("loops", lower_to_loops(schedule.program(), &options)),
        ("flat", lower(schedule.program(), &options)),
    ] {
        match lowered {
            // Threads of a GPU, which lowering does not know, loops that have got other statements since they were pipelined, and
            // buffers that were fixed to be local before threads shared them.
            Err(LowerError::Bound { .. } | LowerError::Pipeline { .. } | LowerError::Scope { .. }) => {}
            Err(error) => fail(level, schedule.program(), &error.to_string()),
            Ok(program) => {
                if let Some(what) = disagreement(kernel, &program, seed) {
                    fail(level, &program, &what);
                }
            }
        }
    }
}

/// Partial sums that each iteration of the outer loop reads.
const PARTIAL_SUMS: Kernel = Kernel {
    name: "partial_sums",
    dims: &[&[]],
    text: "
kernel partial_sums(in a: i32[8, 8], out d: i32[4, 8]) {
  buffer c: i32[8] global
  for ko in 0..4 { for i in 0..8 {
    for ki in 0..2 {
      block c(vi: spatial 8 = i, vk: reduce 8 = ko*2 + ki) { init { c[vi] = 0i32 } c[vi] = c[vi] + a[vi, vk] }
    }
    block d(vo: spatial 4 = ko, vi: spatial 8 = i) { d[vo, vi] = c[vi] }
  } }
}",
};

/// The initial value is stored in the first iteration of a loop around the sums alone: later ones find the sums so far.
#[test]
fn sums_stay_when_a_loop_around_goes_on_with_them() {
    check_schedule(
        &PARTIAL_SUMS,
        &Schedule::new(PARTIAL_SUMS.program(), Arc::new(Target::generic_cpu()), 0),
        0,
    );
}

#[test]
fn random_traces_keep_the_meaning() {
    let cases = std::env::var("TILEWRIGHT_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(200);
    let mut used = BTreeSet::new();
    let recurrences = recurrences::RECURRENCES.iter().map(|(name, text, dims)| Kernel { name, text, dims });
    let recurrences: Vec<Kernel> = recurrences.collect();
    for kernel in KERNELS.iter().chain(&recurrences) {
        for seed in 0..cases {
            let schedule = random_schedule(kernel, seed);
            check_schedule(kernel, &schedule, seed);
            used.extend(schedule.trace().steps().iter().map(|step| step.instruction.name()));
        }
    }
    if cases >= 200 {
        let missing: Vec<&str> = Instruction::ALL.iter().map(|source| source.name).collect();
        let missing: Vec<&str> = missing.into_iter().filter(|name| !used.contains(name)).collect();
        assert_eq!(missing, ELSEWHERE, "primitives that no random trace applied");
    }
}

/// Primitives that change no program, and those with tests of their own.
const ELSEWHERE: &[&str] = &[
    "get_child_blocks",
    "get_consumers",
    "sample_perfect_tile",
    "sample_covering_tile",
    "sample_partitioned_tile",
    "sample_categorical",
    "sample_compute_location",
    "tensorize",
    "split_products",
    "round_products",
    "annotate",
    "unannotate",
    "enter_postproc",
];

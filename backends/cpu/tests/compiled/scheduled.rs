//! Random schedules of kernels with symbolic dimensions, compiled once and called with many sizes, also of nothing.
//! `TILEWRIGHT_CASES` says how many schedules of each kernel.

use tilewright_core::lower::{LowerOptions, lower};

use crate::execute::{Arguments, agree};
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
        let unscheduled = parse(text);
        for seed in 0..cases() {
            let schedule = random_schedule(unscheduled.clone(), seed, 4 + seed as usize % 24);
            let context = || format!("{name}, seed {seed}\n{}\n{}", schedule.trace(), schedule.program());
            let flat = lower(schedule.program(), &LowerOptions::default())
                .unwrap_or_else(|error| panic!("{error}\n{}", context()));
            let kernel = compile(host(), &flat);
            for sizes in *all_sizes {
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

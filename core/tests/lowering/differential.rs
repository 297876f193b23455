//! Random schedules of all kinds of kernels compute the same before lowering, as loops and as flat
//! programs, for fixed and for symbolic extents. `TILEWRIGHT_CASES` says how many, `TILEWRIGHT_SEED` which one.

use crate::execute::{Arguments, agree, with_parts};
use crate::kernels::{ALL, parse};
use crate::random_schedule::random_schedule;
use crate::recurrences::RECURRENCES;
use tilewright_core::lower::{LowerOptions, lower_to_loops, lower_with};
use tilewright_core::program::Program;
use tilewright_core::schedule::Rng;

/// How many schedules to try of each kernel.
fn cases() -> u64 {
    std::env::var("TILEWRIGHT_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(40)
}

/// One schedule of one kernel; the problem, if there is one.
fn check(text: &str, sizes: &[i64], seed: u64) -> Result<(), String> {
    let dense = parse(text);
    let unscheduled = if sizes.contains(&0) { dense } else { with_parts(dense, seed) };
    let arguments = Arguments::random(&unscheduled, sizes, seed);
    let mut rng = Rng::stream(seed, 2);
    let is_symbolic = rng.below(2) == 0;
    let dims: Vec<_> = unscheduled.dims().map(|(var, _)| var).zip(sizes.iter().copied()).collect();
    let bound = unscheduled.bind_dims(&dims);
    let expected = arguments.without_dims().run(&bound, None).map_err(|error| error.to_string())?;
    let (program, arguments) =
        if is_symbolic { (unscheduled, arguments) } else { (bound, arguments.without_dims()) };
    let steps = 4 + rng.below(24);
    let schedule = random_schedule(program, seed, steps);
    let context = |problem: String| format!("{problem}\n{}\n{}", schedule.trace(), schedule.program());
    let compare = |program: &Program, stage: &str| {
        let context = |problem: String| context(format!("{stage}: {problem}\n{program}"));
        let found = arguments.run(program, Some(seed)).map_err(|error| context(error.to_string()))?;
        agree(&found, &expected).map_err(context)
    };
    compare(schedule.program(), "blocks")?;
    // So small a cache does not hold the weights of recurrences.
    let second_cache_bytes = (rng.below(2) == 0).then_some(256);
    let options = LowerOptions { verify: true, second_cache_bytes, ..LowerOptions::default() };
    let loops = lower_to_loops(schedule.program(), &options).map_err(|error| context(error.to_string()))?;
    compare(&loops, "loops")?;
    let mut stages = Vec::new();
    let flat = lower_with(schedule.program(), &options, &mut |pass, program| {
        stages.push((pass.to_owned(), program.clone()));
    });
    let flat = flat.map_err(|error| {
        let last = stages.last().map_or(String::new(), |(_, program)| program.to_string());
        context(format!("{error}\n{last}"))
    })?;
    compare(&flat, "flat").map_err(|problem| {
        let wrong = stages.iter().find(|(_, program)| {
            arguments.run(program, Some(seed)).is_ok_and(|found| agree(&found, &expected).is_err())
        });
        let pass = wrong.map_or("unknown", |(pass, _)| pass);
        format!("first wrong after pass `{pass}`\n{problem}")
    })
}

#[test]
fn random_schedules_compute_the_same_at_every_level() {
    let only = std::env::var("TILEWRIGHT_SEED").ok().and_then(|seed| seed.parse::<u64>().ok());
    for (name, text, all_sizes) in ALL.iter().chain(RECURRENCES) {
        for case in 0..cases() {
            let seed = only.unwrap_or(case);
            let sizes = all_sizes[(seed % all_sizes.len() as u64) as usize];
            if let Err(problem) = check(text, sizes, seed) {
                panic!("kernel {name}, sizes {sizes:?}, seed {seed}: {problem}");
            }
            if only.is_some() {
                break;
            }
        }
    }
}

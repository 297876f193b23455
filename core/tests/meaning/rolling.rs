//! What is done to a program after a producer rolls keeps the meaning or is refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use tilewright_core::schedule::{Rng, Schedule};
use tilewright_core::target::Target;

use crate::kernels::{KERNELS, Kernel};
use crate::{check_schedule, steps};

/// The kernels with consumers whose iterations read overlapping parts.
const OVERLAPPING: &[&str] = &["padded_convolution", "stencils", "pooled_sums", "padded_stencil"];

/// A kernel of which at least one producer rolls; `None` when none was found to.
fn rolling_schedule(kernel: &Kernel, seed: u64, random: &mut Rng) -> Option<Schedule> {
    let mut schedule = Schedule::new(kernel.program(), Arc::new(Target::generic_cpu()), seed);
    for _ in 0..50 {
        let _refused = steps::roll_some_producer(&mut schedule, random);
        if schedule.program().windows().len() > random.below(2) {
            return Some(schedule);
        }
    }
    None
}

#[test]
fn steps_after_rolling_keep_the_meaning_or_are_refused() {
    let cases = std::env::var("TILEWRIGHT_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(150);
    let mut refusals: BTreeMap<&str, usize> = BTreeMap::new();
    let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
    for kernel in KERNELS.iter().filter(|kernel| OVERLAPPING.contains(&kernel.name)) {
        for seed in 0..cases {
            let mut random = Rng::stream(seed, 2);
            let Some(mut schedule) = rolling_schedule(kernel, seed, &mut random) else { continue };
            for _ in 0..random.below(8) {
                let (before, steps) = (schedule.program().clone(), schedule.trace().steps().len());
                match steps::random_step(&mut schedule, &mut random) {
                    Ok(()) => {
                        for step in &schedule.trace().steps()[steps..] {
                            *taken.entry(step.instruction.name()).or_default() += 1;
                        }
                    }
                    Err(error) => {
                        *refusals.entry(error.reason()).or_default() += 1;
                        assert_eq!(*schedule.program(), before, "a refused step changed the program");
                    }
                }
            }
            check_schedule(kernel, &schedule, seed);
        }
    }
    eprintln!("{refusals:#?} {taken:#?}");
    for reason in
        ["rolling_out_of_order", "rolling_apart", "rolling_producer", "rolling_not_kept", "already_rolling"]
    {
        assert!(cases < 150 || refusals.contains_key(reason), "nothing was refused as `{reason}`");
    }
}

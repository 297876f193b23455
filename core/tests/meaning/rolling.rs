//! What is done to a program after a producer rolls keeps the meaning or is refused.

use std::collections::BTreeSet;
use std::sync::Arc;

use tilewright_core::schedule::{Rng, Schedule};
use tilewright_core::target::Target;

use crate::kernels::{KERNELS, Kernel};
use crate::{check_schedule, steps};

/// The kernels with consumers whose iterations read overlapping parts.
const OVERLAPPING: &[&str] =
    &["padded_convolution", "stencils", "pooled_sums", "padded_stencil", "pooled_twice", "upscaled"];

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
    let (mut refusals, mut loops) = (BTreeSet::new(), 0);
    for kernel in KERNELS.iter().filter(|kernel| OVERLAPPING.contains(&kernel.name)) {
        for seed in 0..cases {
            let mut random = Rng::stream(seed, 2);
            let Some(mut schedule) = rolling_schedule(kernel, seed, &mut random) else { continue };
            for _ in 0..random.below(8) {
                let before = schedule.program().clone();
                if let Err(error) = steps::random_step(&mut schedule, &mut random) {
                    refusals.insert(error.reason());
                    assert_eq!(*schedule.program(), before, "a refused step changed the program");
                }
            }
            if random.below(3) == 0 {
                let _refused = steps::random_binding(&mut schedule, &mut random);
            }
            loops = loops.max(schedule.program().to_string().matches("min(1, ").count());
            check_schedule(kernel, &schedule, seed);
        }
    }
    assert!(loops > 1, "no producer rolls over two loops");
    for reason in [
        "rolling_out_of_order",
        "rolling_apart",
        "rolling_producer",
        "rolling_not_kept",
        "rolling_replaced",
        "already_rolling",
    ] {
        assert!(cases < 150 || refusals.contains(reason), "nothing was refused as `{reason}`");
    }
}

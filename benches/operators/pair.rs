//! Two kernels that are measured alternately, and the options of benches that do so.

use std::error::Error;
use std::time::Duration;

use tilewright::Kernel;
use tilewright::bench::{Comparison, Effort, Options, Variant};
use tilewright::tuning::Tuner;

/// How often the two kernels alternate.
const ROUNDS: usize = 5;

/// The time of one kernel in one round.
const EFFORT: Effort =
    Effort { samples: 9, sample: Duration::from_millis(2), budget: Duration::from_millis(200) };

/// Sets threads and records as the options say, and gives the variants to measure.
pub(crate) fn prepare(options: &Options) -> Result<Vec<Variant>, Box<dyn Error>> {
    options.refuse_budget()?;
    tilewright::set_threads(options.threads.unwrap_or(0));
    if let Some(records) = &options.records {
        std::fs::create_dir_all(records)?;
        tilewright::use_records(records)?;
    }
    let given = options.variants()?;
    Ok(if given.is_empty() { vec![Variant::Default] } else { given })
}

/// Tunes a kernel, if the options have a number of trials, as far as its records do not have that many.
pub(crate) fn tune(
    name: &str,
    kernel: &'static Kernel,
    dims: &[(&'static str, i64)],
    options: &Options,
) -> Result<(), Box<dyn Error>> {
    let Some(trials) = options.trials else { return Ok(()) };
    let records = options.records.as_deref().ok_or("`--trials N` needs `--records DIR` to keep them")?;
    eprintln!("{name}: {trials} trials");
    let mut tuner = Tuner::new().trials(trials).seed(options.seed.unwrap_or(1)).records(records);
    tuner.tune(kernel, dims)?;
    tilewright::use_records(records)?;
    Ok(())
}

/// The fastest times of a variant of both kernels, in nanoseconds.
pub(crate) fn fastest(pair: &mut [Comparison; 2], variant: Variant) -> Result<[f64; 2], Box<dyn Error>> {
    for kernel in &mut *pair {
        kernel.check(variant)?;
    }
    let mut fastest = [f64::INFINITY; 2];
    for _ in 0..ROUNDS {
        for (kernel, fastest) in pair.iter_mut().zip(&mut fastest) {
            // The minimum, because other programs only ever add time.
            *fastest = fastest.min(kernel.measure(&[variant], &EFFORT)?.remove(0).min_ns);
        }
    }
    Ok(fastest)
}

/// The geometric mean of ratios, 1 where there are none.
pub(crate) fn geometric_mean(ratios: &[f64]) -> f64 {
    (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len().max(1) as f64).exp()
}

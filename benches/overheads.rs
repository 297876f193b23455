//! The cost of everything around the computation, and the share of the machine's peak that the computation reaches.
//!
//! `cargo bench --bench overheads` prints one JSON line for each figure, with its target; `ratio` is above 1 where the target is
//! met. Words select figures: `cargo bench --bench overheads -- trials call`. The kernels run on one thread. `search/benches/`
//! measures the generation of candidates and the cost model.

#[path = "operators/kernels.rs"]
mod kernels;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tilewright::backends::cpu::peak::fma_peak;
use tilewright::bench::{Comparison, Effort, Options, Variant, run_when_asked};
use tilewright::tuning::Tuner;
use tilewright::{Source, Tensor};

type Failure = Box<dyn std::error::Error>;

/// A figure and what it should be.
struct Figure {
    name: &'static str,
    value: f64,
    unit: &'static str,
    target: f64,
    is_higher_better: bool,
}

impl Figure {
    fn print(&self) {
        let ratio = if self.is_higher_better { self.value / self.target } else { self.target / self.value };
        println!(
            r#"{{"figure":"{}","value":{:.1},"unit":"{}","target":{},"ratio":{ratio:.2}}}"#,
            self.name, self.value, self.unit, self.target
        );
    }
}

/// The figures, by name.
type Measure = fn(&Options) -> Result<Vec<Figure>, Failure>;

const MEASURES: [(&str, Measure); 3] = [("trials", trials), ("call", call), ("peak", peak)];

fn main() -> ExitCode {
    run_when_asked(|options| {
        tilewright::set_threads(1);
        for (name, measure) in MEASURES.into_iter().filter(|(name, _)| options.selects(name)) {
            let figures = measure(options).map_err(|error| format!("{name}: {error}"))?;
            figures.iter().for_each(Figure::print);
        }
        Ok(())
    })
}

/// The dimensions of a product of two square matrices.
fn product(size: i64) -> [(&'static str, i64); 4] {
    [("B", 1), ("N", size), ("M", size), ("K", size)]
}

/// Trials per second when tuning a product of 256³, and the time to compile what was found.
fn trials(options: &Options) -> Result<Vec<Figure>, Failure> {
    let (kernel, dims) = (kernels::batch_matmul::kernel(), product(256));
    let mut tuner = Tuner::new().trials(options.trials.unwrap_or(64)).seed(options.seed.unwrap_or(1));
    let tuned = tuner.tune(kernel, &dims)?;
    let comparison = Comparison::new(kernel, &dims, None)?;
    let compile = comparison.compile_seconds(Variant::Tuned)?;
    Ok(vec![
        Figure {
            name: "trials",
            value: tuned.trials as f64 / tuned.elapsed.as_secs_f64(),
            unit: "trials/s",
            target: 20.0,
            is_higher_better: true,
        },
        Figure { name: "compile", value: compile * 1e3, unit: "ms", target: 5.0, is_higher_better: false },
    ])
}

/// The time of a call of a compiled kernel that computes next to nothing, arguments checked.
fn call(_: &Options) -> Result<Vec<Figure>, Failure> {
    const CALLS: u32 = 20_000;
    let one: Tensor<f32, 3> = Tensor::from_fn([1, 1, 1], |_| 1.0)?;
    let mut result = Tensor::zeros([1, 1, 1])?;
    let mut samples = Vec::new();
    for _ in 0..15 {
        let start = Instant::now();
        for _ in 0..CALLS {
            kernels::batch_matmul::call_into(&one, &one, &mut result)?;
        }
        samples.push(start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS));
    }
    samples.sort_by(f64::total_cmp);
    let value = samples[samples.len() / 2];
    Ok(vec![Figure { name: "call", value, unit: "ns", target: 1000.0, is_higher_better: false }])
}

/// The share of the 128-bit FMA peak that a product of 1024³ reaches, measured alternately with the peak.
fn peak(options: &Options) -> Result<Vec<Figure>, Failure> {
    let (kernel, dims) = (kernels::batch_matmul::kernel(), product(1024));
    tilewright::use_records(Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/tuned"))?;
    let cache = Some(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let mut comparison = Comparison::new(kernel, &dims, cache)?;
    if !matches!(comparison.source(), Source::Exact { .. }) || options.trials.is_some() {
        eprintln!("tuning {}", comparison.title());
        let mut tuner = Tuner::new().trials(options.trials.unwrap_or(64)).seed(options.seed.unwrap_or(1));
        tuner.tune(kernel, &dims)?;
        comparison = Comparison::new(kernel, &dims, cache)?;
    }
    let effort = Effort { samples: 3, ..Effort::default() };
    let mut shares = Vec::new();
    for _ in 0..9 {
        let peak = fma_peak(128, 1, Duration::from_millis(100)).ok_or("no FMA with 128 bits here")?;
        let sampled = comparison.measure(&[Variant::Tuned], &effort)?.remove(0);
        shares.push(comparison.flops() / sampled.median_ns / peak.gflops.median);
    }
    shares.sort_by(f64::total_cmp);
    let value = 100.0 * shares[shares.len() / 2];
    Ok(vec![Figure { name: "peak_share", value, unit: "%", target: 80.0, is_higher_better: true }])
}

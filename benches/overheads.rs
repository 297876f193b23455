//! What everything around the computation costs, and how near the computation comes to the machine's peak.
//!
//! `cargo bench --bench overheads` prints one JSON line for each figure, with its target; `ratio` is above 1 where the target is
//! met. Words select figures: `cargo bench --bench overheads -- generation call`. The kernels run on one thread.

#[path = "operators/kernels.rs"]
mod kernels;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tilewright::backends::cpu::peak::fma_peak;
use tilewright::bench::{Comparison, Effort, NOTHING_ASKED, Options, Variant, explain_options};
use tilewright::search::candidate::Generator;
use tilewright::search::evolution::{Evolution, EvolutionOptions};
use tilewright::search::model::{BoostedModel, CostModel, Sample};
use tilewright::search::rule::RuleSet;
use tilewright::search::space::design_spaces;
use tilewright::search::strategy::{SearchSpace, Strategy};
use tilewright::tuning::Tuner;
use tilewright::{Kernel, Source, Tensor};

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

/// What can be measured, by name.
type Measure = fn(&Options) -> Result<Vec<Figure>, Failure>;

const MEASURES: [(&str, Measure); 4] =
    [("generation", generation), ("trials", trials), ("call", call), ("peak", peak)];

fn main() -> ExitCode {
    tilewright::init();
    let options = match Options::from_environment() {
        Ok(options) => options,
        Err(error) => return explain_options(&error),
    };
    if !options.is_given {
        println!("{NOTHING_ASKED}");
        return ExitCode::SUCCESS;
    }
    tilewright::set_threads(1);
    for (name, measure) in MEASURES.into_iter().filter(|(name, _)| options.selects(name)) {
        match measure(&options) {
            Ok(figures) => figures.iter().for_each(Figure::print),
            Err(error) => {
                eprintln!("error: {name}: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

/// The dimensions of a product of two square matrices.
fn product(size: i64) -> [(&'static str, i64); 4] {
    [("B", 1), ("N", size), ("M", size), ("K", size)]
}

/// Candidates generated per second on one core: replayed, postprocessed, described by features, their speed predicted.
fn generation(_: &Options) -> Result<Vec<Figure>, Failure> {
    let convolution = [
        ("N", 1),
        ("H", 224),
        ("W", 224),
        ("CI", 3),
        ("CO", 64),
        ("KH", 7),
        ("KW", 7),
        ("stride", 2),
        ("pad", 3),
        ("dilation", 1),
        ("groups", 1),
    ];
    let rate = |name, kernel, dims: &[(&str, i64)], target| {
        let value = candidates_per_second(kernel, dims)?;
        Ok(Figure { name, value, unit: "candidates/s", target, is_higher_better: true })
    };
    [
        rate("generation_matmul", kernels::batch_matmul::kernel(), &product(1024), 2000.0),
        rate("generation_conv2d", kernels::conv2d::kernel(), &convolution, 500.0),
    ]
    .into_iter()
    .collect()
}

fn candidates_per_second(kernel: &Kernel, dims: &[(&str, i64)]) -> Result<f64, Failure> {
    let program = kernel.program_for(&kernel.dims_by_name(dims)?)?;
    let target = tilewright::target()?;
    let spaces = design_spaces(&program, &target, &RuleSet::built_in(target.kind)?, 1);
    let generator = Generator { program, target: Arc::clone(&target) };
    let space = SearchSpace { threads: 1, ..SearchSpace::new(generator, spaces, 1) };
    let mut evolution = Evolution::new(space, EvolutionOptions::default());
    let mut model = BoostedModel::default();
    // A model that has learned something costs what a model costs; what it has learned does not matter here.
    let learn = |evolution: &mut Evolution, model: &mut BoostedModel| {
        let candidates = evolution.propose(32, model);
        let samples: Vec<Sample> = candidates
            .iter()
            .map(|candidate| {
                let seconds = 1e-3 + (candidate.hash % 1000) as f64 * 1e-6;
                evolution.learn(candidate, Some(seconds));
                Sample { task: 1, features: candidate.features.clone(), seconds: Some(seconds) }
            })
            .collect();
        model.update(&samples);
    };
    learn(&mut evolution, &mut model);
    learn(&mut evolution, &mut model);
    let (before, start) = (evolution.statistics().generated, Instant::now());
    while start.elapsed() < Duration::from_secs(2) {
        evolution.propose(16, &model);
    }
    Ok((evolution.statistics().generated - before) as f64 / start.elapsed().as_secs_f64())
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

/// The share of the 128-bit FMA peak that a product of 1024³ reaches, both measured in turns.
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

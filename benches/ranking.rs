//! How well cost models order candidates that were measured: the draft model's priors, and the boosted trees.
//!
//! `cargo bench --bench ranking -- --records DIR [--threads N]` takes every kernel at each shape that has records there for this machine and
//! number of threads; its program lies beside its records. Trees are trained on four fifths of the candidates of all shapes and judged by the
//! last fifth, for each fifth; a table says how many pairs of candidates of a shape they put in the right order, and how fast the best of
//! the eight are that they like most, relative to the best.
//!
//! With `--json` it prints a JSON line for each candidate instead, with its features and its scores: `scripts/compare_ranking.py`
//! trains XGBoost on them and prints both side by side.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde::Serialize;
use tilewright::bench::{Options, run_when_asked};
use tilewright::core::program::Program;
use tilewright::search::candidate::{Generator, Statistics};
use tilewright::search::model::{
    Booster, BoosterParameters, ProgramFeatures, Sample, pairwise_accuracy, peak_at_k,
};
use tilewright::search::records::{Database, Record, TunedFor};
use tilewright::search::spec::SearchSpec;
use tilewright::search::strategy::SearchSpace;
use tilewright::tuning::replay::bind;
use tilewright::tuning::report::Table;

type Failure = Box<dyn std::error::Error>;

/// The parts that the candidates of a shape are dealt out to, one after the other.
const FOLDS: usize = 5;

/// The candidates of a shape that a tuner would measure.
const MEASURED: usize = 8;

fn main() -> ExitCode {
    run_when_asked(run)
}

/// The candidates of a kernel at a shape.
struct Task {
    title: String,
    samples: Vec<Sample>,
    /// The prediction for each by trees that were not trained on it.
    scores: Vec<f32>,
}

fn run(options: &Options) -> Result<(), Failure> {
    tilewright::set_threads(options.threads.unwrap_or(0));
    let records = options.records.as_ref().ok_or("`--records` says where the records are")?;
    let mut tasks = tasks(&Database::open(records)?)?;
    let (fit, predict) = cross_validate(&mut tasks);
    if options.json {
        return print_candidates(&tasks);
    }
    let count: usize = tasks.iter().map(|task| task.samples.len()).sum();
    println!("{}", table(&tasks));
    println!(
        "{count} candidates; trained in {:.0} ms on average, {:.0} predictions/s",
        fit.as_secs_f64() * 1e3 / FOLDS as f64,
        count as f64 / predict.as_secs_f64(),
    );
    Ok(())
}

/// The tasks that have at least a few candidates in every fold.
fn tasks(database: &Database) -> Result<Vec<Task>, Failure> {
    let needed = TunedFor::of(&tilewright::run_context()?);
    let mut groups: BTreeMap<_, Vec<&Record>> = BTreeMap::new();
    for record in database.records().filter(|record| record.target == needed) {
        groups.entry((record.kernel.as_str(), record.program, &record.shape)).or_default().push(record);
    }
    let mut tasks = Vec::new();
    for ((kernel, program, _), records) in groups {
        let missing = || format!("{kernel}: the records do not hold its program; tune it again");
        let definition = database.program(program).ok_or_else(missing)?;
        let samples = samples(definition, &records).map_err(|error| format!("{kernel}: {error}"))?;
        if samples.len() >= 4 * FOLDS {
            let sizes = records[0].shape.dims.iter().chain(&records[0].shape.params);
            let sizes: Vec<String> = sizes.map(|(name, size)| format!("{name}={size}")).collect();
            let scores = vec![0.0; samples.len()];
            tasks.push(Task { title: format!("{kernel}[{}]", sizes.join(", ")), samples, scores });
        } else {
            eprintln!("{kernel} ({program:016x}): {} candidates are too few", samples.len());
        }
    }
    Ok(tasks)
}

/// The measurements of a kernel at a shape.
fn samples(definition: &Program, records: &[&Record]) -> Result<Vec<Sample>, Failure> {
    let program = bind(definition, &records[0].shape)?;
    let task = program.stable_hash();
    let context = tilewright::run_context()?;
    let spec = SearchSpec::built_in(context.target.kind())?;
    let space = SearchSpace::new(Generator::new(program, context, spec), Vec::new(), 0);
    let made = space.generate(records.len(), &mut Statistics::default(), |number, statistics| {
        space.replay(&records[number].trace, statistics)
    });
    let sample = |(candidate, record): (Option<tilewright::search::candidate::Candidate>, &&Record)| {
        let seconds = record.median_ns().map(|ns| ns * 1e-9);
        Some(Sample { task, features: candidate?.features, seconds })
    };
    Ok(made.into_iter().zip(records).filter_map(sample).collect())
}

/// Predicts each candidate by trees trained on the other folds, and says how long training and predicting took.
fn cross_validate(tasks: &mut [Task]) -> (Duration, Duration) {
    let (mut fitting, mut predicting) = (Duration::ZERO, Duration::ZERO);
    for fold in 0..FOLDS {
        let known = tasks.iter().flat_map(|task| {
            let others = task.samples.iter().enumerate().filter(move |(number, _)| number % FOLDS != fold);
            others.map(|(_, sample)| sample.clone())
        });
        let known: Vec<Sample> = known.collect();
        let start = Instant::now();
        let booster = Booster::fit(&known, &BoosterParameters::default(), None);
        fitting += start.elapsed();
        for task in tasks.iter_mut() {
            let held: Vec<usize> = (fold..task.samples.len()).step_by(FOLDS).collect();
            let features: Vec<ProgramFeatures> =
                held.iter().map(|number| task.samples[*number].features.clone()).collect();
            let start = Instant::now();
            let scores = booster.predict(&features);
            predicting += start.elapsed();
            for (number, score) in held.into_iter().zip(scores) {
                task.scores[number] = score;
            }
        }
    }
    (fitting, predicting)
}

fn table(tasks: &[Task]) -> Table {
    let mut table = Table::new(&["task", "candidates", "pairs: draft", "trees", "best of 8: draft", "trees"]);
    let mut sums = [0.0; 4];
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    for task in tasks {
        let seconds: Vec<Option<f64>> = task.samples.iter().map(|sample| sample.seconds).collect();
        let priors: Vec<f32> = task.samples.iter().map(|sample| sample.features.prior()).collect();
        let figures = [
            pairwise_accuracy(&priors, &seconds),
            pairwise_accuracy(&task.scores, &seconds),
            peak_at_k(&priors, &seconds, MEASURED),
            peak_at_k(&task.scores, &seconds, MEASURED),
        ]
        .map(|figure| figure.unwrap_or(f64::NAN));
        sums.iter_mut().zip(figures).for_each(|(sum, figure)| *sum += figure);
        let [a, b, c, d] = figures.map(percent);
        table.row([task.title.clone(), task.samples.len().to_string(), a, b, c, d]);
    }
    let [a, b, c, d] = sums.map(|sum| percent(sum / tasks.len() as f64));
    table.row(["mean".to_owned(), String::new(), a, b, c, d]);
    table
}

/// A candidate, as JSON.
#[derive(Serialize)]
struct Line<'a> {
    task: &'a str,
    fold: usize,
    seconds: Option<f64>,
    prior: f32,
    score: f32,
    rows: Vec<&'a [f32]>,
}

fn print_candidates(tasks: &[Task]) -> Result<(), Failure> {
    for task in tasks {
        for (number, sample) in task.samples.iter().enumerate() {
            let line = Line {
                task: &task.title,
                fold: number % FOLDS,
                seconds: sample.seconds,
                prior: sample.features.prior(),
                score: task.scores[number],
                rows: sample.features.rows().collect(),
            };
            println!("{}", serde_json::to_string(&line)?);
        }
    }
    Ok(())
}

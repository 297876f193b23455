//! Quality of short searches: how fast the best kernel is after few trials, as a share of that after many.
//!
//! `cargo bench --bench quality -- --quality 64,1000 --seeds 1,2,3 --records DIR [--ops GMM.0,C2D.0] [--threads N] [--json]`
//!
//! For each operator and seed one search goes on from the smaller number of trials to the larger one: what it has found when it
//! has spent the smaller number, with the comparison of the leaders that ends every search, is kept, and both winners are
//! then compared alternately. A search of the smaller number alone makes the same proposals until then. Measurements and results
//! are kept in `DIR`, so that a run that is ended goes on where it was: it may be ended at any time. The end of the output
//! is the geometric mean of what is there.

#[path = "operators/attention.rs"]
mod attention;
#[path = "operators/bytes.rs"]
mod bytes;
#[path = "operators/halves.rs"]
mod halves;
#[path = "operators/kernels.rs"]
mod kernels;
#[path = "operators/memory.rs"]
mod memory;
#[expect(dead_code, reason = "counts of operations are for the other benches")]
#[path = "operators/opset.rs"]
mod opset;
#[path = "operators/pieces.rs"]
mod pieces;
#[path = "operators/quantised.rs"]
mod quantised;
#[path = "operators/recurrences.rs"]
mod recurrences;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use tilewright::bench::{Contest, Effort, Options, run_when_asked, stop_on_interrupt};
use tilewright::core::schedule::Trace;
use tilewright::search::records::Database;
use tilewright::tuning::Tuner;
use tilewright::tuning::report::{Table, duration};

use opset::Operator;

/// The numbers of trials that are compared when nothing is said.
const STAGES: [usize; 2] = [64, 1000];

/// The seeds when nothing is said.
const SEEDS: [u64; 3] = [1, 2, 3];

/// The result of a comparison, as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Outcome {
    op: String,
    seed: u64,
    threads: usize,
    /// Numbers of trials, ascending.
    trials: Vec<usize>,
    /// The times of the winners after these numbers of trials, in nanoseconds, measured alternately.
    best_ns: Vec<f64>,
}

impl Outcome {
    /// The speed after the fewest trials, as a share of that after the most.
    fn quality(&self) -> Option<f64> {
        Some(self.best_ns.last()? / self.best_ns.first()?)
    }
}

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    run_when_asked(run)
}

fn run(options: &Options) -> Result<(), Failure> {
    options.refuse_budget()?;
    tilewright::set_threads(options.threads.unwrap_or(0));
    let directory =
        options.records.as_deref().ok_or("`--records DIR` is needed: what is found is kept there")?;
    fs::create_dir_all(directory)?;
    let names = if options.ops.is_empty() { opset::names() } else { options.ops.clone() };
    let seeds = if options.seeds.is_empty() { SEEDS.to_vec() } else { options.seeds.clone() };
    let mut stages = if options.quality.is_empty() { STAGES.to_vec() } else { options.quality.clone() };
    stages.sort_unstable();
    let stop = stop_on_interrupt();
    let mut outcomes = Vec::new();
    for seed in seeds {
        for name in &names {
            let operator = opset::operator(name)?;
            let found = outcome(&operator, seed, &stages, directory, &stop)?;
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            if options.json {
                println!("{}", serde_json::to_string(&found)?);
            }
            outcomes.push(found);
        }
    }
    if !options.json {
        print!("{}", table(&outcomes));
    }
    let logarithms: Vec<f64> = outcomes.iter().filter_map(|found| Some(found.quality()?.ln())).collect();
    let mean = (logarithms.iter().sum::<f64>() / logarithms.len().max(1) as f64).exp();
    eprintln!("{:.1} % in geometric mean of {}", 100.0 * mean, logarithms.len());
    Ok(())
}

/// The stored result of a comparison, or that of a new one.
fn outcome(
    operator: &Operator,
    seed: u64,
    stages: &[usize],
    directory: &Path,
    stop: &Arc<AtomicBool>,
) -> Result<Outcome, Failure> {
    let threads = tilewright::threads()?;
    let title = format!("{}-seed{seed}-threads{threads}", operator.name.replace(':', "_"));
    let kept = directory.join(format!("{title}.json"));
    if let Ok(text) = fs::read_to_string(&kept)
        && let Ok(known) = serde_json::from_str::<Outcome>(&text)
        && known.trials == stages
    {
        return Ok(known);
    }
    let mut winners: Vec<Trace> = Vec::new();
    let mut previous: Option<PathBuf> = None;
    for trials in stages {
        let records = directory.join(format!("{title}-{trials}.jsonl"));
        if let (Some(previous), false) = (&previous, records.exists()) {
            // Renaming makes the file appear whole or not at all.
            let unfinished = records.with_extension("unfinished");
            fs::copy(previous, &unfinished)?;
            fs::rename(&unfinished, &records)?;
        }
        winners.push(search(operator, seed, *trials, &records, stop)?);
        previous = Some(records);
    }
    let mut contest = Contest::new((operator.kernel)(), &operator.dims, &winners.iter().collect::<Vec<_>>())?;
    contest.check()?;
    let best_ns = contest.measure(&Effort::default())?.into_iter().map(|sampled| sampled.clean_ns).collect();
    let found = Outcome { op: operator.name.clone(), seed, threads, trials: stages.to_vec(), best_ns };
    if !stop.load(Ordering::Relaxed) {
        fs::write(&kept, serde_json::to_string(&found)?)?;
    }
    Ok(found)
}

/// The winner after a number of trials, recorded trials included.
fn search(
    operator: &Operator,
    seed: u64,
    trials: usize,
    records: &Path,
    stop: &Arc<AtomicBool>,
) -> Result<Trace, Failure> {
    let kernel = (operator.kernel)();
    eprintln!("{}: {trials} trials with seed {seed}", operator.name);
    let mut tuner = Tuner::new().trials(trials).seed(seed).records(records).stop_when(Arc::clone(stop));
    let tuned = tuner.tune(kernel, &operator.dims)?;
    let seconds = tuned.elapsed.as_secs_f64();
    eprintln!("  {} more after {} in {}", tuned.trials, tuned.earlier_trials, duration(seconds));
    let context = tilewright::run_context()?.with_threads(tuned.threads);
    let database = Database::open(records)?;
    let best = database.best(kernel.hash()?, &tuned.shape, &context).ok_or("nothing was measured")?;
    Ok(best.trace.clone())
}

fn table(outcomes: &[Outcome]) -> Table {
    let mut table = Table::new(&["operator", "seed", "times, fewest trials first", "quality"]);
    for found in outcomes {
        let times: Vec<String> = found.best_ns.iter().map(|ns| duration(ns * 1e-9)).collect();
        let quality =
            found.quality().map_or_else(|| "–".to_owned(), |share| format!("{:.1} %", 100.0 * share));
        table.row([found.op.clone(), found.seed.to_string(), times.join(", "), quality]);
    }
    table
}

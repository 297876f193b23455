//! Tuning from nothing: how fast it is, and what it finds.
//!
//! `cargo bench --bench tuning -- --json --ops GMM.0 --trials 64 --seed 1 [--seconds S] [--threads N]` tunes each operator in a
//! scratch directory and prints one JSON line for it; without `--json` a table. With `--records DIR` it goes on from the records
//! there, and leaves the fastest there. With `--device gpu:0` it tunes on a GPU. With `--budget 10min` all are tuned together, where it takes most off. With `--until
//! peers/tvm.json`, times by operator in nanoseconds, it says after how many seconds the best was as fast.

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
#[path = "operators/opset.rs"]
mod opset;
#[path = "operators/pieces.rs"]
mod pieces;
#[path = "operators/quantised.rs"]
mod quantised;
#[path = "operators/recurrences.rs"]
mod recurrences;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tilewright::bench::{Options, run_when_asked, stop_on_interrupt};
use tilewright::devices;
use tilewright::search::records::Database;
use tilewright::tuning::report::{Table, duration};
use tilewright::tuning::{TuneTask, Tuned, Tuner};

use opset::Operator;

/// The records that are kept of an operator: the fastest, and one to compare it with.
const KEPT: usize = 2;

fn main() -> ExitCode {
    run_when_asked(run)
}

fn run(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    tilewright::set_threads(options.threads.unwrap_or(0));
    let names = if options.ops.is_empty() { opset::names() } else { options.ops.clone() };
    let operators = names.iter().map(|name| opset::operator(name)).collect::<Result<Vec<_>, _>>()?;
    let stop = stop_on_interrupt();
    let mut table = Table::new(&[
        "operator",
        "trials",
        "time",
        "trials/s",
        "candidates/s",
        "default",
        "best",
        "speed-up",
        "GFLOP/s",
    ]);
    let goals = match &options.until {
        Some(path) => Some(Goals::read(path)?),
        None => None,
    };
    let mut reached: Vec<(String, Option<f64>)> = Vec::new();
    let mut show = |operator: &Operator, tuned: &Tuned| -> Result<(), serde_json::Error> {
        let until = goals.as_ref().and_then(|goals| goals.of(&operator.name)).map(|goal| reach(tuned, goal));
        reached.extend(until.map(|until| (operator.name.clone(), until)));
        match options.json {
            true => println!("{}", line(&operator.name, tuned, until.flatten())?),
            false => table.row(row(operator, tuned)),
        }
        Ok(())
    };
    if let Some(budget) = options.budget {
        let scratch = tempfile::tempdir()?;
        let tasks: Vec<TuneTask<'_>> = operators
            .iter()
            .map(|own| TuneTask { kernel: (own.kernel)(), dims: &own.dims, weight: 1.0 })
            .collect();
        let coverage = tuner(options, scratch.path(), &stop)?.tune_all(&tasks, budget)?;
        for (operator, covered) in operators.iter().zip(&coverage.tasks) {
            match &covered.result {
                Ok(tuned) => show(operator, tuned)?,
                Err(error) => eprintln!("{}: {error}", operator.name),
            }
        }
    } else {
        for operator in &operators {
            let scratch = tempfile::tempdir()?;
            let mut tuner = tuner(options, scratch.path(), &stop)?;
            let tuned = tuner.tune((operator.kernel)(), &operator.dims)?;
            show(operator, &tuned)?;
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
    }
    if let Some(records) = &options.records {
        Database::open(records)?.prune(KEPT)?;
    }
    if !options.json {
        print!("{table}");
        print!("{}", tell_reached(&reached));
    }
    Ok(())
}

/// Times to be reached, in nanoseconds, by operator.
struct Goals(BTreeMap<String, f64>);

impl Goals {
    fn read(path: &Path) -> Result<Self, String> {
        let problem = |error: &dyn std::fmt::Display| {
            format!("`{}`: {error}; expected a JSON object of nanoseconds by operator", path.display())
        };
        let text = std::fs::read_to_string(path).map_err(|error| problem(&error))?;
        serde_json::from_str(&text).map(Goals).map_err(|error| problem(&error))
    }

    /// In seconds.
    fn of(&self, operator: &str) -> Option<f64> {
        self.0.get(operator).map(|ns| ns * 1e-9)
    }
}

/// After how many seconds of tuning the best time was first no longer than a goal.
fn reach(tuned: &Tuned, goal: f64) -> Option<f64> {
    tuned.curve.iter().find(|(_, seconds)| *seconds <= goal).map(|(at, _)| *at)
}

/// When each goal was reached, and the geometric mean of those that were.
fn tell_reached(reached: &[(String, Option<f64>)]) -> String {
    let mut text = String::new();
    for (operator, at) in reached {
        let at = at.map_or_else(|| "not reached".to_owned(), |at| format!("reached after {}", duration(at)));
        text.push_str(&format!("{operator}: {at}\n"));
    }
    let logarithms: Vec<f64> = reached.iter().filter_map(|(_, at)| at.map(f64::ln)).collect();
    if !logarithms.is_empty() {
        let mean = (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp();
        let (count, all) = (logarithms.len(), reached.len());
        text.push_str(&format!("{count} of {all} reached, after {} in geometric mean\n", duration(mean)));
    }
    text
}

/// A tuner as the options want it, whose records are in a scratch directory unless they say otherwise.
fn tuner(options: &Options, scratch: &Path, stop: &Arc<AtomicBool>) -> Result<Tuner, tilewright::Error> {
    let mut tuner = Tuner::new()
        .records(options.records.as_deref().unwrap_or(scratch))
        .seed(options.seed.unwrap_or(1))
        .progress(!options.json)
        .stop_when(Arc::clone(stop));
    if let Some(device) = &options.device {
        tuner = tuner.device(devices::find(device)?);
    }
    if let Some(trials) = options.trials {
        tuner = tuner.trials(trials);
    }
    if let Some(limit) = options.time_limit {
        tuner = tuner.time_limit(limit);
    }
    Ok(tuner)
}

fn rates(tuned: &Tuned) -> (f64, f64) {
    let trials = tuned.trials as f64 / tuned.elapsed.as_secs_f64().max(1e-9);
    (trials, tuned.generated as f64 / tuned.generation.as_secs_f64().max(1e-9))
}

/// The line that is printed for an operator, as a JSON object.
#[derive(serde::Serialize)]
struct Line<'a> {
    op: &'a str,
    trials: usize,
    seconds: f64,
    trials_per_s: f64,
    candidates_per_s: f64,
    default_ns: Option<f64>,
    best_ns: Option<f64>,
    curve: Vec<[f64; 2]>,
    /// After how many seconds the time that was asked for was reached.
    until_s: Option<f64>,
    rejected: &'a BTreeMap<String, u64>,
}

fn line(name: &str, tuned: &Tuned, until_s: Option<f64>) -> Result<String, serde_json::Error> {
    let (trials_per_s, candidates_per_s) = rates(tuned);
    serde_json::to_string(&Line {
        op: name,
        trials: tuned.trials,
        seconds: tuned.elapsed.as_secs_f64(),
        trials_per_s,
        candidates_per_s,
        default_ns: tuned.default_seconds.map(|seconds| seconds * 1e9),
        best_ns: tuned.best_seconds.map(|seconds| seconds * 1e9),
        curve: tuned.curve.iter().map(|(at, seconds)| [*at, seconds * 1e9]).collect(),
        until_s,
        rejected: &tuned.rejected,
    })
}

fn row(operator: &Operator, tuned: &Tuned) -> [String; 9] {
    let (trials_per_second, candidates_per_second) = rates(tuned);
    let time = |seconds: Option<f64>| seconds.map_or_else(|| "–".to_owned(), duration);
    [
        operator.name.clone(),
        tuned.trials.to_string(),
        duration(tuned.elapsed.as_secs_f64()),
        format!("{trials_per_second:.1}"),
        format!("{candidates_per_second:.0}"),
        time(tuned.default_seconds),
        time(tuned.best_seconds),
        tuned.speedup().map_or_else(|| "–".to_owned(), |speedup| format!("{speedup:.2} ×")),
        tuned
            .best_seconds
            .map_or_else(|| "–".to_owned(), |seconds| format!("{:.1}", operator.flops / seconds / 1e9)),
    ]
}

//! The composition experiment: what each rule of the search space is worth.
//!
//! `cargo bench -p tilewright-example-rules -- --trials 64 --seed 1 --threads 2 [--only attention] [--records DIR] [--json]`
//!
//! Each workload is tuned in spaces of which each has one more rule than the one before: the built-in rules, and last the
//! rule of this crate. All searches have the same number of trials and the same seed. Where a rule changes no design
//! space, nothing is tuned again. The winners are compared at the end, alternately, so that the ratios are of one run. With
//! `--records` the searches go on from the records there.

#[path = "../../../../benches/operators/bytes.rs"]
mod bytes;
mod kernels;
mod ladder;
#[path = "../../../../benches/operators/kernels.rs"]
mod operators;

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tilewright::Kernel;
use tilewright::bench::{Contest, Effort, Options, Sampled, run_when_asked, stop_on_interrupt};
use tilewright::core::schedule::Trace;
use tilewright::search::space::design_spaces;
use tilewright::tuning::Tuner;
use tilewright::tuning::report::{Table, duration};

use ladder::{Rung, lines_of_code, rungs};

/// A kernel at a shape.
struct Workload {
    kernel: &'static Kernel,
    dims: &'static [(&'static str, i64)],
}

/// Layers of BERT-base for 128 words, of attention for 512, and of a ResNet; its products also in bytes.
fn workloads() -> Vec<Workload> {
    vec![
        Workload { kernel: kernels::dense_gelu::kernel(), dims: &[("M", 128), ("K", 768), ("N", 3072)] },
        Workload { kernel: operators::softmax::kernel(), dims: &[("M", 1024), ("N", 512)] },
        Workload { kernel: bytes::matmul_u8i8::kernel(), dims: &[("M", 128), ("K", 768), ("N", 768)] },
        Workload {
            kernel: kernels::conv2d_relu::kernel(),
            dims: &[("H", 56), ("W", 56), ("CI", 64), ("KH", 3), ("KW", 3), ("CO", 64), ("pad", 1)],
        },
        Workload { kernel: kernels::attention::kernel(), dims: &[("H", 12), ("S", 512), ("D", 64)] },
        Workload {
            kernel: kernels::two_layers::kernel(),
            dims: &[("M", 4096), ("D", 64), ("H", 1024), ("O", 64)],
        },
    ]
}

/// The result of searching a space.
struct Found<'a> {
    rung: &'a Rung,
    /// The number of design spaces.
    sketches: usize,
    /// The best schedule; `None` where the space is that of the rung before.
    winner: Option<Trace>,
}

/// The line that is printed for a space, as a JSON object.
#[derive(serde::Serialize)]
struct Line<'a> {
    workload: &'a str,
    rule: &'a str,
    sketches: usize,
    lines_of_code: Option<usize>,
    is_new_space: bool,
    best_ns: f64,
    spread: f64,
    over_base: f64,
    over_previous: f64,
}

fn main() -> ExitCode {
    run_when_asked(run)
}

fn run(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    options.refuse_budget()?;
    tilewright::set_threads(options.threads.unwrap_or(0));
    let rungs = rungs()?;
    let stop = stop_on_interrupt();
    for workload in workloads().iter().filter(|workload| options.selects(workload.kernel.name())) {
        let found = climb(workload, &rungs, options, &stop)?;
        if stop.load(Ordering::Relaxed) {
            break;
        }
        show(workload, &found, options)?;
    }
    Ok(())
}

/// Tunes a workload in each space that differs from the one before.
fn climb<'a>(
    workload: &Workload,
    rungs: &'a [Rung],
    options: &Options,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<Found<'a>>, Box<dyn std::error::Error>> {
    let &Workload { kernel, dims } = workload;
    let program = kernel.program_for(&kernel.dims_by_name(dims)?)?;
    let context = tilewright::run_context()?;
    let mut found: Vec<Found<'a>> = Vec::new();
    let mut before = BTreeSet::new();
    for rung in rungs {
        let spaces: BTreeSet<String> =
            design_spaces(&program, &context, &rung.rules, 1).iter().map(structure).collect();
        let mut winner = None;
        if spaces != before && !stop.load(Ordering::Relaxed) {
            let name = rung.rule.map_or("base", |rule| rule.name);
            eprintln!("{}: {name}, {} sketches", kernel.name(), spaces.len());
            let mut tuner = Tuner::new()
                .rules(rung.rules.clone())
                .trials(options.trials.unwrap_or(64))
                .seed(options.seed.unwrap_or(1))
                .stop_when(Arc::clone(stop));
            if let Some(records) = &options.records {
                tuner = tuner.records(records.join(format!("{}-{name}.jsonl", kernel.name())));
            }
            if let Some(limit) = options.time_limit {
                tuner = tuner.time_limit(limit);
            }
            winner = tuner.tune(kernel, dims)?.record.map(|record| record.trace);
        }
        found.push(Found { rung, sketches: spaces.len(), winner });
        before = spaces;
    }
    Ok(found)
}

/// A design space without its decisions, which are drawn.
fn structure(space: &Trace) -> String {
    let text = space.to_string();
    text.lines().map(|line| line.split(" !decision").next().unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// Compares the winners and prints the result.
fn show(
    workload: &Workload,
    found: &[Found<'_>],
    options: &Options,
) -> Result<(), Box<dyn std::error::Error>> {
    let winners: Vec<&Trace> = found.iter().filter_map(|found| found.winner.as_ref()).collect();
    let mut contest = Contest::new(workload.kernel, workload.dims, &winners)?;
    contest.check()?;
    let effort = Effort { budget: Duration::from_secs(1), ..Effort::default() };
    let mut measured = contest.measure(&effort)?.into_iter();
    let mut table =
        Table::new(&["rule", "sketches", "best", "spread", "× base", "× previous", "lines of code"]);
    let mut times: Vec<Sampled> = Vec::new();
    for found in found {
        let is_new_space = found.winner.is_some();
        let previous = times.last().copied();
        let own = if is_new_space { measured.next() } else { previous };
        let Some(own) = own else { continue };
        times.push(own);
        let line = Line {
            workload: workload.kernel.name(),
            rule: found.rung.rule.map_or("base", |rule| rule.name),
            sketches: found.sketches,
            lines_of_code: found.rung.rule.as_ref().and_then(lines_of_code),
            is_new_space,
            best_ns: own.median_ns,
            spread: own.spread,
            over_base: times[0].median_ns / own.median_ns,
            over_previous: previous.unwrap_or(own).median_ns / own.median_ns,
        };
        match options.json {
            true => println!("{}", serde_json::to_string(&line)?),
            false => table.row(row(&line)),
        }
    }
    if !options.json {
        let dims: Vec<String> = workload.dims.iter().map(|(name, size)| format!("{name}={size}")).collect();
        println!("\n{}[{}]\n{table}", workload.kernel.name(), dims.join(", "));
    }
    Ok(())
}

fn row(line: &Line<'_>) -> [String; 7] {
    let of_new_space = |text: String| if line.is_new_space { text } else { "–".to_owned() };
    [
        format!("{}{}", if line.rule == "base" { "" } else { "+ " }, line.rule),
        line.sketches.to_string(),
        of_new_space(duration(line.best_ns * 1e-9)),
        of_new_space(format!("{:.0} %", 100.0 * line.spread)),
        of_new_space(format!("{:.2}", line.over_base)),
        of_new_space(format!("{:.2}", line.over_previous)),
        line.lines_of_code.map_or_else(|| "–".to_owned(), |lines| lines.to_string()),
    ]
}

//! Tuning: measuring schedules of a kernel until a good one is found, and recording what was measured.
//!
//! ```no_run
//! use tilewright::prelude::*;
//! use tilewright::tuning::Tuner;
//!
//! /// y = 2·x
//! #[tensor_kernel]
//! fn double(x: &Tensor<f32, N>) -> Tensor<f32, N> {
//!     let mut y = Tensor::zeros();
//!     for i in 0..N {
//!         y[[i]] = 2.0 * x[[i]];
//!     }
//!     y
//! }
//!
//! fn main() -> Result<(), tilewright::tuning::TuneError> {
//!     tilewright::init();
//!     let tuned = Tuner::new().trials(32).records("tuned/").progress(true).tune(double::kernel(), &[("N", 4096)])?;
//!     println!("{tuned}");
//!     Ok(())
//! }
//! ```
//!
//! Candidates are built, checked against the definition and timed in a process of their own; see [`init`]. Which
//! ones is the business of [`tilewright_search`]. An application that only calls kernels needs nothing of this.
//!
//! | module | does |
//! |---|---|
//! | `subject` | a kernel at a shape, with arguments and expected results (`inputs`, `tolerance`) |
//! | `measure`, `sampling` | a batch of candidates: compile, check, time |
//! | `worker`, `protocol`, `process`, `isolated` | the same in another process |
//! | `runner` | the same in this one |
//! | `session` | one run: recording, counting, telling observers |
//! | [`report`], `progress` | what people see |

mod error;
mod failure;
mod flops;
mod inputs;
mod isolated;
mod measure;
mod observer;
mod peak;
mod process;
mod progress;
mod protocol;
pub mod report;
mod runner;
mod sampling;
mod session;
pub(crate) mod subject;
mod tolerance;
mod tuned;
mod worker;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tilewright_search::candidate::Candidate;
use tilewright_search::database::{Database, TunedFor};
use tilewright_search::default_schedule::default_candidate;
use tilewright_search::evolution::EvolutionOptions;
use tilewright_search::model::BoostedModel;
use tilewright_search::rule::RuleSet;
use tilewright_search::tuner::{self, Earlier, Runner, Task, TuneOptions};

pub use error::TuneError;
pub use failure::reason;
pub use flops::count_flops;
pub use observer::{Observer, Progress, Started};
pub use peak::peak_gflops;
pub use tuned::Tuned;
pub use worker::init;

use crate::kernel::{Kernel, kernel};
use crate::{machine, records, settings};
use isolated::{IsolatedRunner, Limits};
use protocol::{Anchor, Setup};
use runner::{InProcessRunner, Interrupt};
use session::Session;
use subject::{Subject, SubjectOptions};

/// Where candidates run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// In a process of their own if [`init`] was called and the kernel is registered, else in this process.
    #[default]
    Automatic,
    /// In this process: a candidate that crashes or hangs takes the program with it.
    InProcess,
}

/// Tunes kernels. Made by [`Tuner::new`], adjusted by its methods, used by [`Tuner::tune`].
pub struct Tuner {
    trials: usize,
    time_limit: Option<Duration>,
    seed: u64,
    threads: Option<usize>,
    records: Option<PathBuf>,
    rules: Option<RuleSet>,
    isolation: Isolation,
    observers: Vec<Box<dyn Observer>>,
    stop: Option<Arc<AtomicBool>>,
}

impl Default for Tuner {
    fn default() -> Self {
        Tuner {
            trials: 64,
            time_limit: None,
            seed: 1,
            threads: None,
            records: None,
            rules: None,
            isolation: Isolation::Automatic,
            observers: Vec::new(),
            stop: None,
        }
    }
}

impl Tuner {
    /// 64 trials with seed 1 on all threads, recorded nowhere, without a word.
    pub fn new() -> Self {
        Self::default()
    }

    /// The most measurements for one kernel and shape. Those of earlier runs that are in the records count.
    pub fn trials(mut self, trials: usize) -> Self {
        self.trials = trials;
        self
    }

    /// The most time that tuning one kernel and shape may take, besides a short comparison of the best at its end.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = Some(limit);
        self
    }

    /// Decides what the search draws, and the arguments of the measured runs.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// How many threads the kernel is tuned for: those that kernels use, unless this says otherwise.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads.max(1));
        self
    }

    /// Where measurements are recorded, each as it is made: a directory, or a file whose name ends in `.jsonl`. What is
    /// there already is not measured again.
    pub fn records(mut self, path: impl AsRef<Path>) -> Self {
        self.records = Some(path.as_ref().to_owned());
        self
    }

    /// The rules that span the search space: all that are linked into the program, unless this says otherwise.
    pub fn rules(mut self, rules: RuleSet) -> Self {
        self.rules = Some(rules);
        self
    }

    /// Whether to show the progress: a bar on a terminal, lines elsewhere.
    pub fn progress(self, show: bool) -> Self {
        if show { self.observer(progress::ProgressBar::default()) } else { self }
    }

    /// Lets an observer follow.
    pub fn observer(mut self, observer: impl Observer + 'static) -> Self {
        self.observers.push(Box::new(observer));
        self
    }

    /// Where candidates run.
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = isolation;
        self
    }

    /// Ends tuning after the current measurement once this is true, keeping what was measured. A program that installs a
    /// handler of Ctrl-C sets it there.
    pub fn stop_when(mut self, stop: Arc<AtomicBool>) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Tunes a kernel at a shape, given by the names of its dimensions and `usize` arguments. From then on calls
    /// of this program use what was found; with [`records`](Tuner::records) other programs can.
    ///
    /// # Errors
    /// [`TuneError`]; what was measured before it is recorded.
    pub fn tune(&mut self, kernel: &Kernel, dims: &[(&str, i64)]) -> Result<Tuned, TuneError> {
        let start = Instant::now();
        let plan = self.plan(kernel, dims)?;
        let deadline = self.time_limit.map(|limit| start + limit);
        let interrupt = Interrupt::new(deadline, self.stop.clone());
        let database = match &self.records {
            Some(path) => Database::open(path)?,
            None => Database::in_memory(),
        };
        for problem in database.problems() {
            tracing::warn!(%problem, "tuning record skipped");
        }
        let mut session = Session::new(&plan, database, interrupt.clone(), &mut self.observers);
        let earlier = session.earlier();
        let anchor = first_measured(&earlier);
        let found = if plan.is_isolated {
            let cache = tempfile::tempdir().map_err(TuneError::Temporary)?;
            let setup = plan.setup(cache.path());
            let mut runner = IsolatedRunner::new(worker_command, setup, Limits::default(), interrupt, anchor);
            let found = plan.search(&mut runner, &mut session, earlier);
            if let Some(failure) = runner.take_failure() {
                return Err(failure);
            }
            found
        } else {
            let options = SubjectOptions { seed: plan.seed, threads: plan.threads, cache: None };
            session.note("computing the reference results");
            let subject = Subject::new(kernel, &plan.dims, machine::backend()?, &options)?;
            plan.search(&mut InProcessRunner::new(subject, interrupt, anchor), &mut session, earlier)
        };
        let tuned = session.finish(found)?;
        if let Some(record) = &tuned.record {
            records::use_record(record.clone())?;
        }
        self.observers.iter_mut().for_each(|observer| observer.finished(&tuned));
        Ok(tuned)
    }

    fn plan(&self, kernel: &Kernel, dims: &[(&str, i64)]) -> Result<Plan, TuneError> {
        let dims = kernel.dims_by_name(dims)?;
        let program = kernel.program_for(&dims)?;
        let threads = match self.threads {
            Some(threads) => threads,
            None => settings::threads()?,
        };
        let mut target = machine::backend()?.target().clone();
        target.cores = u32::try_from(threads).unwrap_or(u32::MAX);
        let rules = match &self.rules {
            Some(rules) => rules.clone(),
            None => RuleSet::registered(target.kind)?,
        };
        let path = format!("{}::{}", kernel.definition().module, kernel.name());
        let is_registered = self::kernel(&path).is_ok();
        let peak_gflops = peak::peak_of(&program, &target, None);
        Ok(Plan {
            title: format!("{}[{}]", kernel.name(), kernel.shape(&dims)),
            name: kernel.name(),
            path,
            hash: kernel.hash()?,
            shape: kernel.shape(&dims),
            flops: count_flops(&program),
            peak_gflops,
            task: Task { id: program.stable_hash(), program, target: Arc::new(target) },
            dims,
            rules,
            threads,
            seed: self.seed,
            trials: self.trials,
            time_limit: self.time_limit,
            is_isolated: self.isolation == Isolation::Automatic && worker::is_initialised() && is_registered,
        })
    }
}

impl fmt::Debug for Tuner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tuner")
            .field("trials", &self.trials)
            .field("time_limit", &self.time_limit)
            .field("seed", &self.seed)
            .field("threads", &self.threads)
            .field("records", &self.records)
            .field("isolation", &self.isolation)
            .finish_non_exhaustive()
    }
}

/// What earlier runs measured first, which the times of this run are to be comparable with. Records do not hold its
/// fastest sample; the median stands in for it.
fn first_measured(earlier: &[Earlier]) -> Option<Anchor> {
    let measured =
        |record: &Earlier| Some(Anchor { trace: record.trace.to_string(), seconds: record.seconds? });
    earlier.iter().find_map(measured)
}

/// The command that starts this program again, as its measuring process.
fn worker_command() -> std::io::Result<std::process::Command> {
    let mut command = std::process::Command::new(std::env::current_exe()?);
    command.env(worker::VARIABLE, "1");
    Ok(command)
}

/// Everything that is decided before the first measurement.
pub(crate) struct Plan {
    title: String,
    name: &'static str,
    path: String,
    hash: u64,
    shape: tilewright_search::database::Shape,
    task: Task,
    dims: Vec<i64>,
    rules: RuleSet,
    threads: usize,
    seed: u64,
    trials: usize,
    time_limit: Option<Duration>,
    flops: f64,
    peak_gflops: Option<f64>,
    is_isolated: bool,
}

/// What a search has found.
struct Found {
    default_seconds: Option<f64>,
    result: tuner::TuneResult,
}

impl Found {
    /// Compares what was found with the default schedule in alternation: times from different minutes are not
    /// to be divided. If the default is faster after all, it is what was found.
    fn compare_with_default(&mut self, default: Candidate, runner: &mut dyn Runner) {
        let result = &mut self.result;
        let Some((best, seconds)) = &mut result.best else { return };
        if best.trace == default.trace {
            self.default_seconds = Some(*seconds);
            return;
        }
        if self.default_seconds.is_none() {
            return;
        }
        let Some((best_seconds, default_seconds)) = runner.compare(best, &default) else {
            result.confirmed.clear();
            return;
        };
        *seconds = best_seconds.min(default_seconds);
        self.default_seconds = Some(default_seconds);
        if let Some(first) = result.confirmed.first_mut() {
            first.1 = best_seconds;
        }
        result.confirmed.retain(|(candidate, _)| candidate.trace != default.trace);
        let place = usize::from(default_seconds >= best_seconds).min(result.confirmed.len());
        if !result.confirmed.is_empty() {
            result.confirmed.insert(place, (default.clone(), default_seconds));
        }
        if default_seconds < best_seconds {
            *best = default;
        }
    }
}

impl Plan {
    fn tuned_for(&self) -> TunedFor {
        TunedFor::target(&self.task.target)
    }

    fn setup(&self, cache: &Path) -> Setup {
        let shape = &self.shape;
        Setup {
            kernel: self.path.clone(),
            program: format!("{:016x}", self.hash),
            dims: shape
                .dims
                .iter()
                .chain(&shape.params)
                .map(|(name, value)| (name.clone(), *value))
                .collect(),
            threads: self.threads,
            seed: self.seed,
            cache: cache.to_owned(),
            memory: process::memory_limit(),
        }
    }

    /// Measures the default schedule, so that what is found is never worse, and then searches.
    fn search(&self, runner: &mut dyn Runner, session: &mut Session<'_>, mut earlier: Vec<Earlier>) -> Found {
        session.started(earlier.len());
        let default = default_candidate(&self.task.program, &self.task.target, &self.rules);
        let mut default_seconds = None;
        if let Some(candidate) = &default {
            match earlier.iter().find(|record| record.trace == candidate.trace) {
                Some(record) => default_seconds = record.seconds,
                None if session.is_over() => {}
                None => {
                    if let Some(Some(measurement)) = runner.measure(std::slice::from_ref(candidate)).pop() {
                        default_seconds = session.measured_default(candidate, &measurement);
                        earlier.push(Earlier { trace: candidate.trace.clone(), seconds: default_seconds });
                    }
                }
            }
        }
        let options = TuneOptions {
            trials: self.trials.saturating_sub(earlier.len()),
            time_limit: session.time_left(),
            seed: self.seed,
            roofline_seconds: self.peak_gflops.map(|peak| self.flops / (peak * 1e9)),
            evolution: EvolutionOptions::default(),
            ..TuneOptions::default()
        };
        let mut model = BoostedModel::default();
        let result = tuner::tune(&self.task, &self.rules, &mut model, runner, session, &earlier, &options);
        let mut found = Found { default_seconds, result };
        if let (Some(default), true) = (default, found.result.trials > 0) {
            found.compare_with_default(default, runner);
        }
        found
    }
}

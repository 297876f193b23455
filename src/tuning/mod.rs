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
//! | `job` | one kernel at one shape, a round at a time |
//! | `session` | what is recorded, counted and told of it |
//! | `coverage` | what became of each of many |
//! | `transfer` | what records of other kernels and shapes are good for |
//! | [`report`], `progress` | what people see |

mod coverage;
mod error;
mod failure;
mod flops;
mod inputs;
mod isolated;
mod job;
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
mod transfer;
mod tuned;
mod worker;

#[cfg(test)]
mod accuracy_tests;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tilewright_search::candidate::Candidate;
use tilewright_search::database::{Database, TunedFor};
use tilewright_search::evolution::EvolutionOptions;
use tilewright_search::model::{BoostedModel, CostModel};
use tilewright_search::rule::RuleSet;
use tilewright_search::scheduler::{Policy, Round, Scheduler};
use tilewright_search::strategy::{MakeStrategy, SearchSpace, Strategy, evolutionary};
use tilewright_search::tuner::{self, BATCH, Earlier, End, Runner, Task};

pub use coverage::{Coverage, Covered};
pub use error::TuneError;
pub use failure::reason;
pub use flops::count_flops;
pub use observer::{Observer, Progress, Started};
pub use peak::peak_gflops;
pub use tilewright_search::scheduler::{Budget, BudgetError};
pub use tuned::Tuned;
pub use worker::init;

use crate::kernel::{Kernel, kernel};
use crate::{machine, records, settings};
use isolated::{IsolatedRunner, Limits};
use job::{Job, MethodParts};
use protocol::{Anchor, Setup};
use runner::Interrupt;
use session::{Observers, Session};
use transfer::Learned;

/// Where candidates run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// In a process of their own if [`init`] was called and the kernel is registered, else in this process.
    #[default]
    Automatic,
    /// In this process: a candidate that crashes or hangs takes the program with it.
    InProcess,
}

/// Tunes kernels. Made by [`Tuner::new`], adjusted by its methods, used by [`Tuner::tune`] and [`Tuner::tune_all`].
///
/// What the search goes by can be exchanged without touching this crate: [`Tuner::rules`], [`Tuner::strategy`],
/// [`Tuner::cost_model`].
///
/// ```no_run
/// use tilewright::search::model::{CostModel, ProgramFeatures, Sample};
/// use tilewright::search::strategy::RandomStrategy;
/// use tilewright::tuning::Tuner;
///
/// /// Believes the draft model, and learns nothing.
/// struct Draft;
///
/// impl CostModel for Draft {
///     fn predict(&self, programs: &[ProgramFeatures]) -> Vec<f32> {
///         programs.iter().map(ProgramFeatures::prior).collect()
///     }
///
///     fn update(&mut self, _: &[Sample]) {}
/// }
///
/// let tuner = Tuner::new().strategy(RandomStrategy::new).cost_model(Draft);
/// ```
pub struct Tuner {
    trials: Option<usize>,
    time_limit: Option<Duration>,
    seed: u64,
    threads: Option<usize>,
    records: Option<PathBuf>,
    rules: Option<RuleSet>,
    strategy: MakeStrategy,
    model: Option<Box<dyn CostModel>>,
    /// What the model that was given has learned.
    learned: Learned,
    policy: Policy,
    transfers: bool,
    isolation: Isolation,
    observers: Observers,
    stop: Option<Arc<AtomicBool>>,
}

/// A kernel at a shape that is to be tuned, one of many.
#[derive(Clone, Copy, Debug)]
pub struct TuneTask<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// Its dimensions and `usize` arguments.
    pub dims: &'a [(&'a str, i64)],
    /// How often it is run, relative to the others: a finite number of at least 0.
    pub weight: f64,
}

/// The most measurements of a kernel at a shape when nothing is said.
const TRIALS: usize = 64;

impl Default for Tuner {
    fn default() -> Self {
        Tuner {
            trials: None,
            time_limit: None,
            seed: 1,
            threads: None,
            records: None,
            rules: None,
            strategy: evolutionary(EvolutionOptions::default()),
            model: None,
            learned: Learned::default(),
            policy: Policy::default(),
            transfers: true,
            isolation: Isolation::Automatic,
            observers: Observers::default(),
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
        self.trials = Some(trials);
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

    /// What decides which candidates are measured: evolutionary search, unless this says otherwise. It is made
    /// anew for each kernel and shape. [`tilewright_search::strategy`] has others, and the trait to write one.
    pub fn strategy<S: Strategy + 'static>(
        self,
        make: impl Fn(SearchSpace) -> S + Send + Sync + 'static,
    ) -> Self {
        self.make_strategy(Arc::new(move |space| Box::new(make(space))))
    }

    /// As [`strategy`](Tuner::strategy), for one that is only known when the program runs.
    pub fn make_strategy(mut self, strategy: MakeStrategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// What ranks candidates before they are measured: boosted trees on top of a draft model, new for each run, unless this
    /// says otherwise. A model that is given here keeps what it has learned from one run to the next.
    pub fn cost_model(mut self, model: impl CostModel + 'static) -> Self {
        self.model = Some(Box::new(model));
        self.learned = Learned::default();
        self
    }

    /// How [`tune_all`](Tuner::tune_all) chooses the task that is tuned next: where a round promises most, unless this says
    /// otherwise.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Whether records of other shapes and other kernels serve the search as well: their traces to begin with, their
    /// times for the cost model. They do, unless this says otherwise.
    pub fn transfer(mut self, transfers: bool) -> Self {
        self.transfers = transfers;
        self
    }

    /// Whether to show the progress: a bar on a terminal, lines elsewhere.
    pub fn progress(self, show: bool) -> Self {
        if show { self.observer(progress::ProgressBar::default()) } else { self }
    }

    /// Lets an observer follow.
    pub fn observer(self, observer: impl Observer + 'static) -> Self {
        self.observers.borrow_mut().push(Box::new(observer));
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
        let trials = self.trials.unwrap_or(TRIALS);
        let budget = Budget { trials: Some(trials), time: self.time_limit };
        let mut plan = self.plan(kernel, dims)?;
        plan.trials = Some(trials);
        let coverage = self.run(vec![(kernel, plan, 1.0)], budget)?;
        coverage.tasks.into_iter().next().expect("there is one task").result
    }

    /// Tunes many kernels and shapes under one budget, which is spent where it takes most off the sum of their
    /// times, each by its weight: see [`scheduler`](tilewright_search::scheduler). A task that reaches the machine's limit,
    /// or for which more trials promise next to nothing, gets no more. Without a budget there are 64 trials for
    /// each task, dealt out likewise. [`trials`](Tuner::trials) and [`time_limit`](Tuner::time_limit) limit each task as
    /// well.
    ///
    /// Measurements that are in the records count as part of a budget of trials. A budget of time covers generating, compiling
    /// and measuring, and is exceeded by a short comparison of the best of each task.
    ///
    /// # Errors
    /// When a task is none or its weight no finite number of at least 0, or records cannot be read or written. That one kernel cannot be tuned stands in the coverage, and
    /// the others are.
    pub fn tune_all(&mut self, tasks: &[TuneTask<'_>], budget: Budget) -> Result<Coverage, TuneError> {
        let budget = match budget {
            Budget { trials: None, time: None } => Budget::trials(TRIALS * tasks.len()),
            given => given,
        };
        let mut planned = Vec::new();
        for task in tasks {
            let mut plan = self.plan(task.kernel, task.dims)?;
            plan.stops_when_converged = true;
            if !task.weight.is_finite() || task.weight < 0.0 {
                return Err(TuneError::Weight { kernel: plan.title, weight: task.weight });
            }
            planned.push((task.kernel, plan, task.weight));
        }
        self.run(planned, budget)
    }

    fn run(&mut self, planned: Vec<(&Kernel, Plan, f64)>, budget: Budget) -> Result<Coverage, TuneError> {
        let deadline = budget.time.and_then(|limit| Instant::now().checked_add(limit));
        let interrupt = Interrupt::new(deadline, self.stop.clone());
        let database = Rc::new(RefCell::new(match &self.records {
            Some(path) => Database::open(path)?,
            None => Database::in_memory(),
        }));
        for problem in database.borrow().problems() {
            tracing::warn!(%problem, "tuning record skipped");
        }
        let cache = tempfile::tempdir().map_err(TuneError::Temporary)?;
        let (mut own_model, mut learned_by_own) = (BoostedModel::default(), Learned::default());
        // From here to where it is given back nothing returns early.
        let mut given_model = self.model.take();
        let (model, learned): (&mut dyn CostModel, _) = match &mut given_model {
            Some(model) => (model.as_mut(), &mut self.learned),
            None => (&mut own_model, &mut learned_by_own),
        };
        if self.transfers {
            let plans: Vec<&Plan> = planned.iter().map(|(_, plan, _)| plan).collect();
            let kernels: Vec<&Kernel> = planned.iter().map(|(kernel, ..)| *kernel).collect();
            transfer::warm(model, learned, &database.borrow(), &plans, &kernels);
        }
        let jobs = planned.into_iter().map(|(kernel, plan, weight)| {
            let plan = Rc::new(plan);
            let isolated = plan.is_isolated.then(|| {
                let (setup, limits) = (plan.setup(cache.path()), Limits::default());
                IsolatedRunner::new(worker_command, setup, limits, interrupt.clone(), None)
            });
            let (database, observers) = (Rc::clone(&database), Rc::clone(&self.observers));
            let session = Session::new(Rc::clone(&plan), database, interrupt.clone(), observers);
            (Job::new(kernel, plan, session, interrupt.clone(), isolated), weight)
        });
        let jobs: Vec<(Job<'_>, f64)> = jobs.collect();
        let (transfers, known) = (self.transfers, Rc::clone(&database));
        let starts = move |plan: &Plan| match transfers {
            true => transfer::starts(&known.borrow(), plan),
            false => Vec::new(),
        };
        let method = MethodParts { strategy: MakeStrategy::clone(&self.strategy), starts: Box::new(starts) };
        let coverage = self.rounds(jobs, budget, &interrupt, model, &method);
        self.model = given_model;
        coverage
    }

    /// Gives each job its rounds, and finishes them.
    fn rounds(
        &mut self,
        jobs: Vec<(Job<'_>, f64)>,
        budget: Budget,
        interrupt: &Interrupt,
        model: &mut dyn CostModel,
        method: &MethodParts,
    ) -> Result<Coverage, TuneError> {
        let earlier: usize = jobs.iter().map(|(job, _)| job.earlier()).sum();
        let trials = budget.trials.map(|trials| trials.saturating_sub(earlier));
        let mut scheduler = Scheduler::new(self.policy, Budget { trials, ..budget }, BATCH);
        let mut states: Vec<(Job<'_>, Option<End>, Option<TuneError>)> = Vec::new();
        for (job, weight) in jobs {
            scheduler.add(job.facts(weight));
            states.push((job, None, None));
        }
        let mut last = None;
        while !interrupt.is_due()
            && let Some(turn) = scheduler.next_turn()
        {
            if let Some(last) = last.replace(turn.task)
                && last != turn.task
            {
                let (job, ..): &mut (Job<'_>, _, _) = &mut states[last];
                job.rest();
            }
            let (job, end, failure) = &mut states[turn.task];
            let (start, before) = (Instant::now(), job.trials());
            match job.round(turn.trials, scheduler.trials_left(), model, method) {
                Ok(round) => {
                    *end = round.end;
                    scheduler.record(turn.task, round);
                }
                Err(error) => {
                    *failure = Some(error);
                    let (trials, elapsed) = (job.trials() - before, start.elapsed());
                    let end = Some(End::Exhausted);
                    scheduler.record(turn.task, Round { trials, elapsed, best: None, end });
                }
            }
        }
        let why = match (interrupt.is_stopped(), interrupt.is_due()) {
            (true, _) => End::Stopped,
            (false, true) => End::Time,
            (false, false) if scheduler.time_left().is_some_and(|left| left.is_zero()) => End::Time,
            (false, false) => End::Trials,
        };
        let mut coverage = Coverage::default();
        for (job, end, failure) in states {
            let title = job.title();
            let result = match failure {
                Some(failure) => Err(failure),
                None => job.finish(end.unwrap_or(why), model, method),
            };
            if let Ok(tuned) = &result {
                if let Some(record) = &tuned.record {
                    records::use_record(record.clone())?;
                }
                self.observers.borrow_mut().iter_mut().for_each(|observer| observer.finished(tuned));
            }
            coverage.tasks.push(Covered { title, result });
        }
        Ok(coverage)
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
            stops_when_converged: false,
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
    /// The most measurements, those of earlier runs included.
    trials: Option<usize>,
    stops_when_converged: bool,
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

    /// The time below which no schedule can get, in seconds.
    fn roofline_seconds(&self) -> Option<f64> {
        self.peak_gflops.map(|peak| self.flops / (peak * 1e9))
    }
}

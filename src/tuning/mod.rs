//! Tuning: measuring schedules of a kernel until a good one is found, and recording the measurements.
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
//! Candidates are built, checked against the definition and timed in a process of their own; see [`init`]. [`tilewright_search`]
//! chooses them; [`tilewright_measure`] measures them. An application that only calls kernels needs nothing of this.
//!
//! | module | does |
//! |---|---|
//! | `plan` | the decisions before the first measurement |
//! | `rounds` | which of many jobs gets the next round |
//! | `job` | one kernel at one shape, a round at a time |
//! | `session` | records, counts and reports the measurements |
//! | `coverage` | the result of each of many tasks |
//! | `transfer` | traces and samples from records of other kernels and shapes |
//! | [`report`], `progress` | output for people |

mod coverage;
mod error;
mod job;
mod observer;
mod plan;
mod progress;
pub mod report;
mod rounds;
mod session;
mod transfer;
mod tuned;

#[cfg(test)]
mod accuracy_tests;
#[cfg(test)]
mod cache_tests;
#[cfg(test)]
mod replay_tests;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tilewright_measure::isolation::protocol::Setup;
use tilewright_measure::isolation::{IsolatedRunner, Limits, worker};
use tilewright_measure::runner::Interrupt;
use tilewright_measure::scratch::Scratch;
use tilewright_runtime::DeviceId;
use tilewright_search::model::{BoostedModel, CostModel};
use tilewright_search::mutate::Mutators;
use tilewright_search::postproc::Postprocessors;
pub use tilewright_search::records::CacheState;
use tilewright_search::records::Database;
use tilewright_search::rule::RuleSet;
use tilewright_search::scheduler::Policy;
use tilewright_search::strategy::EvolutionOptions;
use tilewright_search::strategy::{MakeStrategy, SearchSpace, Strategy, evolutionary};

pub use coverage::{Coverage, Covered};
pub use error::TuneError;
pub use observer::{Observer, Progress, Started};
pub use tilewright_measure::count::{count_bytes, count_flops};
pub use tilewright_measure::isolation::init;
pub use tilewright_measure::peak::peak_gflops;
pub use tilewright_measure::roofline::{Roofline, Share, memory_bandwidth};
pub use tilewright_measure::{MeasureError, reason, replay};
pub use tilewright_search::scheduler::{Budget, BudgetError};
pub use tuned::Tuned;

use crate::graph::{GraphKernel, KernelGraph};
use crate::kernel::Kernel;
use job::{Job, MethodParts};
use plan::Plan;
use rounds::Rounds;
use session::{Observers, Session};
use transfer::Learned;

/// The process in which candidates run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// In a process of their own if [`init`] was called and the kernel is registered, else in this process.
    #[default]
    Automatic,
    /// In this process: a candidate that crashes or hangs ends or blocks the program.
    InProcess,
}

/// Tunes kernels. Made by [`Tuner::new`], adjusted by its methods, used by [`Tuner::tune`] and [`Tuner::tune_all`].
///
/// All parts of the search can be exchanged without a change of this crate: [`Tuner::rules`], [`Tuner::mutators`],
/// [`Tuner::postprocessors`], [`Tuner::strategy`], [`Tuner::cost_model`].
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
    device: DeviceId,
    cache: CacheState,
    records: Option<PathBuf>,
    rules: Option<RuleSet>,
    mutators: Option<Mutators>,
    postprocessors: Option<Postprocessors>,
    strategy: MakeStrategy,
    model: Option<Box<dyn CostModel>>,
    /// The samples that the given model has learned from.
    learned: Learned,
    policy: Policy,
    transfers: bool,
    isolation: Isolation,
    observers: Observers,
    stop: Option<Arc<AtomicBool>>,
}

/// A kernel at a shape, one task of many.
#[derive(Clone, Copy, Debug)]
pub struct TuneTask<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// Its dimensions and `usize` arguments.
    pub dims: &'a [(&'a str, i64)],
    /// How often it is run, relative to the others: a finite number of at least 0.
    pub weight: f64,
}

/// The default for the most measurements of a kernel at a shape.
const TRIALS: usize = 64;

impl Default for Tuner {
    fn default() -> Self {
        Tuner {
            trials: None,
            time_limit: None,
            seed: 1,
            threads: None,
            device: DeviceId::DEFAULT,
            cache: CacheState::Warm,
            records: None,
            rules: None,
            mutators: None,
            postprocessors: None,
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
    /// 64 trials with seed 1 on all threads, without records, silent.
    pub fn new() -> Self {
        Self::default()
    }

    /// The most measurements for one kernel and shape. Recorded measurements of earlier runs count.
    pub fn trials(mut self, trials: usize) -> Self {
        self.trials = Some(trials);
        self
    }

    /// The most time that tuning one kernel and shape may take, besides a short comparison of the best at its end.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = Some(limit);
        self
    }

    /// Sets the seed of the search, and of the arguments of the measured runs.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The number of threads that the kernel is tuned for; the default is the number that kernels use.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads.max(1));
        self
    }

    /// The device to tune on; the default is the one on which calls run that name no device. Records are of this device, and calls on
    /// it use them.
    pub fn device(mut self, device: DeviceId) -> Self {
        self.device = device;
        self
    }

    /// Sets where the operands of measured runs are: in the caches, unless this says otherwise. A record says when it is of cold
    /// caches, and times of the two states are never compared; calls use the winner of the last run.
    pub fn cache(mut self, cache: CacheState) -> Self {
        self.cache = cache;
        self
    }

    /// Sets where measurements are recorded, each as it is made: a directory, or a file whose name ends in `.jsonl`. Candidates
    /// with records there are not measured again.
    pub fn records(mut self, path: impl AsRef<Path>) -> Self {
        self.records = Some(path.as_ref().to_owned());
        self
    }

    /// Sets the rules that generate the search space; the default is all rules that are linked into the program.
    pub fn rules(mut self, rules: RuleSet) -> Self {
        self.rules = Some(rules);
        self
    }

    /// Sets the mutators, the small steps from one schedule to another; the default is the built-in ones.
    pub fn mutators(mut self, mutators: Mutators) -> Self {
        self.mutators = Some(mutators);
        self
    }

    /// Sets the postprocessors, which make sampled schedules fit to be compiled; the default is the built-in ones. A record
    /// holds their steps. When it is fitted to another shape, the built-in ones are applied there.
    pub fn postprocessors(mut self, postprocessors: Postprocessors) -> Self {
        self.postprocessors = Some(postprocessors);
        self
    }

    /// Sets the strategy, which decides which candidates are measured; the default is evolutionary search. It is made
    /// anew for each kernel and shape. [`tilewright_search::strategy`] has others, and the trait to write one.
    pub fn strategy<S: Strategy + 'static>(
        self,
        make: impl Fn(SearchSpace) -> S + Send + Sync + 'static,
    ) -> Self {
        self.make_strategy(Arc::new(move |space| Box::new(make(space))))
    }

    /// As [`strategy`](Tuner::strategy), for a strategy that is only known at run time.
    pub fn make_strategy(mut self, strategy: MakeStrategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// Sets the cost model, which ranks candidates before they are measured; the default is boosted trees on top of a draft model,
    /// new for each run. A model that is given here keeps what it has learned from one run to the next.
    pub fn cost_model(mut self, model: impl CostModel + 'static) -> Self {
        self.model = Some(Box::new(model));
        self.learned = Learned::default();
        self
    }

    /// Sets how [`tune_all`](Tuner::tune_all) chooses the task to tune next; the default is the task whose next round promises
    /// most.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets whether the search also uses records of other shapes and other kernels: their traces as starting points, their
    /// times for the cost model. The default is to use them.
    pub fn transfer(mut self, transfers: bool) -> Self {
        self.transfers = transfers;
        self
    }

    /// Whether to show the progress: a bar on a terminal, lines elsewhere.
    pub fn progress(self, show: bool) -> Self {
        if show { self.observer(progress::ProgressBar::default()) } else { self }
    }

    /// Adds an observer.
    pub fn observer(self, observer: impl Observer + 'static) -> Self {
        self.observers.borrow_mut().push(Box::new(observer));
        self
    }

    /// The process in which candidates run.
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = isolation;
        self
    }

    /// Ends tuning after the current measurement once this is true; measurements so far are kept. A program that installs a
    /// handler of Ctrl-C sets it there.
    pub fn stop_when(mut self, stop: Arc<AtomicBool>) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Tunes a kernel at a shape, given by the names of its dimensions and `usize` arguments. From then on calls
    /// of this program use the result; with [`records`](Tuner::records) other programs can.
    ///
    /// # Errors
    /// [`TuneError`]; measurements before it are recorded.
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
    /// each task, distributed in the same way. [`trials`](Tuner::trials) and [`time_limit`](Tuner::time_limit) limit each task as
    /// well.
    ///
    /// Measurements that are in the records count as part of a budget of trials. A budget of time covers generating, compiling
    /// and measuring, and is exceeded by a short comparison of the best of each task.
    ///
    /// # Errors
    /// When a task has a wrong name, its weight is no finite number of at least 0, or records cannot be read or written. A kernel that
    /// cannot be tuned stands in the coverage with its error, and the others are tuned.
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

    /// Tunes the kernels of a [`#[tensor_graph]`](crate::tensor_graph) under one budget, at several sizes of the graph's dimensions. A kernel weighs as much
    /// as it has calls in runs at all of these sizes. Otherwise as [`tune_all`](Tuner::tune_all).
    ///
    /// ```no_run
    /// # use tilewright::prelude::*;
    /// # use tilewright::tuning::{Budget, Tuner};
    /// # #[tensor_kernel]
    /// # fn double(x: &Tensor<f32, N>) -> Tensor<f32, N> {
    /// #     let mut y = Tensor::zeros();
    /// #     for i in 0..N {
    /// #         y[[i]] = 2.0 * x[[i]];
    /// #     }
    /// #     y
    /// # }
    /// #[tensor_graph]
    /// fn quadruple(x: &Tensor<f32, B, S>) -> Tensor<f32, { B * S }> {
    ///     double(&double(x.reshape([B * S])))
    /// }
    ///
    /// # fn main() -> Result<(), tilewright::tuning::TuneError> {
    /// let sizes: [&[(&str, i64)]; 2] = [&[("B", 1), ("S", 128)], &[("B", 8), ("S", 128)]];
    /// let tuned = Tuner::new().records("tuned/").tune_graph(&quadruple::graph()?, &sizes, Budget::trials(200))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When a dimension of the graph has no size, and as [`tune_all`](Tuner::tune_all).
    pub fn tune_graph(
        &mut self,
        graph: &KernelGraph,
        sizes: &[&[(&str, i64)]],
        budget: Budget,
    ) -> Result<Coverage, TuneError> {
        let mut kernels: Vec<GraphKernel> = Vec::new();
        for sizes in sizes {
            for one in graph.kernels(sizes)? {
                let same = |known: &&mut GraphKernel| {
                    std::ptr::eq(known.kernel, one.kernel) && known.dims == one.dims
                };
                match kernels.iter_mut().find(same) {
                    Some(known) => known.calls += one.calls,
                    None => kernels.push(one),
                }
            }
        }
        let dims: Vec<Vec<(&str, i64)>> = kernels.iter().map(GraphKernel::named_dims).collect();
        let tasks: Vec<TuneTask<'_>> = kernels
            .iter()
            .zip(&dims)
            .map(|(one, dims)| TuneTask { kernel: one.kernel, dims, weight: one.calls as f64 })
            .collect();
        self.tune_all(&tasks, budget)
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
        let cache = Scratch::new().map_err(TuneError::Temporary)?;
        let setup = |plan: &Plan| plan.is_isolated.then(|| plan.setup(cache.path())).transpose();
        let setups: Vec<Option<Setup>> =
            planned.iter().map(|(_, plan, _)| setup(plan)).collect::<Result<_, _>>()?;
        let (mut own_model, mut learned_by_own) = (BoostedModel::default(), Learned::default());
        // No early return from here until the parts are given back.
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
        let jobs = planned.into_iter().zip(setups).map(|((kernel, plan, weight), setup)| {
            let plan = Rc::new(plan);
            let isolated = setup.map(|setup| {
                IsolatedRunner::new(worker::command, setup, Limits::default(), interrupt.clone())
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
        let rounds = Rounds::new(jobs, self.policy, budget, interrupt);
        let coverage = rounds.run(model, &method, &self.observers);
        self.model = given_model;
        coverage
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

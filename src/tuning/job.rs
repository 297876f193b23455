//! The tuning of one kernel at one shape, a round at a time.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use tilewright_measure::anchor::Anchors;
use tilewright_measure::isolation::IsolatedRunner;
use tilewright_measure::runner::{InProcessRunner, Interrupt};
use tilewright_measure::subject::{Subject, SubjectOptions};
use tilewright_search::candidate::Candidate;
use tilewright_search::default_schedule::default_with_rules;
use tilewright_search::model::CostModel;
use tilewright_search::scheduler::{Round, TaskFacts};
use tilewright_search::strategy::MakeStrategy;
use tilewright_search::tuner::{Earlier, End, Method, Runner, Start, TaskTuner, TuneOptions};

use super::plan::{Found, Plan};
use super::session::Session;
use super::{TuneError, Tuned};
use crate::kernel::Kernel;

/// Where a job's candidates run.
pub(super) enum JobRunner {
    /// In a process of their own.
    Isolated(Box<IsolatedRunner>),
    /// In this process; the subject is prepared on first use.
    InProcess(Option<Box<InProcessRunner>>),
}

/// The state of a job that has begun.
struct Search {
    tuner: TaskTuner,
    default: Option<Candidate>,
    default_seconds: Option<f64>,
}

/// The tuning of one kernel at one shape.
pub(super) struct Job<'a> {
    kernel: &'a Kernel,
    plan: Rc<Plan>,
    session: Session,
    interrupt: Interrupt,
    runner: JobRunner,
    earlier: Vec<Earlier>,
    search: Option<Search>,
}

impl<'a> Job<'a> {
    pub(super) fn new(
        kernel: &'a Kernel,
        plan: Rc<Plan>,
        mut session: Session,
        interrupt: Interrupt,
        isolated: Option<IsolatedRunner>,
    ) -> Self {
        let earlier = session.earlier();
        let runner = match isolated {
            Some(runner) => JobRunner::Isolated(Box::new(runner)),
            None => JobRunner::InProcess(None),
        };
        let mut job = Job { kernel, plan, session, interrupt, runner, earlier, search: None };
        if let JobRunner::Isolated(runner) = &mut job.runner {
            runner.set_anchors(Anchors::of_earlier(&job.earlier));
        }
        job
    }

    /// The kernel and its shape.
    pub(super) fn title(&self) -> String {
        self.plan.title.clone()
    }

    /// Measurements that earlier runs have recorded.
    pub(super) fn earlier(&self) -> usize {
        self.earlier.len()
    }

    /// The facts that the scheduler needs.
    pub(super) fn facts(&self, weight: f64) -> TaskFacts {
        TaskFacts {
            weight,
            flops: self.plan.flops,
            roofline_seconds: self.plan.roofline_seconds(),
            kind: self.plan.hash,
            best: self.earlier.iter().filter_map(|record| record.seconds).reduce(f64::min),
        }
    }

    /// Measurements of this run.
    pub(super) fn trials(&self) -> usize {
        self.session.trials()
    }

    /// Measures up to `count` candidates; the first time, the default schedule is the first of them, so that the result is
    /// never worse. The whole run has `most` left.
    pub(super) fn round(
        &mut self,
        count: usize,
        most: Option<usize>,
        model: &mut dyn CostModel,
        method: &MethodParts,
    ) -> Result<Round, TuneError> {
        let start = Instant::now();
        self.session.resume(most);
        let before = self.session.trials();
        let result = self.measure(count, most, model, method);
        self.session.pause();
        let end = result?;
        let best = self.search.as_ref().and_then(|search| search.tuner.best_seconds());
        Ok(Round { trials: self.session.trials() - before, elapsed: start.elapsed(), best, end })
    }

    fn measure(
        &mut self,
        count: usize,
        most: Option<usize>,
        model: &mut dyn CostModel,
        method: &MethodParts,
    ) -> Result<Option<End>, TuneError> {
        let before = self.session.trials();
        if self.search.is_none() {
            let has_room = most != Some(0);
            self.begin(has_room, model, method)?;
        }
        let spent = self.session.trials() - before;
        let own = self.plan.trials.map(|trials| trials.saturating_sub(self.session.all_trials()));
        let left = most.map(|most| most.saturating_sub(spent));
        let left = [own, left].into_iter().flatten().min().unwrap_or(usize::MAX);
        let of_round = count.saturating_sub(spent);
        // The default schedule took the whole round; others may follow.
        if of_round == 0 && left > 0 && spent > 0 {
            return Ok(None);
        }
        let count = of_round.min(left);
        let search = self.search.as_mut().expect("it has begun");
        search.tuner.set_roofline(self.plan.roofline_seconds());
        let runner = self.runner.get();
        let end = search.tuner.round(count, model, runner, &mut self.session);
        self.check_runner()?;
        Ok(end)
    }

    /// Prepares the search, and measures the default schedule if there is room for it and it has no time yet.
    fn begin(
        &mut self,
        has_room: bool,
        model: &mut dyn CostModel,
        method: &MethodParts,
    ) -> Result<(), TuneError> {
        let plan = Rc::clone(&self.plan);
        self.session.started(self.earlier.len());
        if let JobRunner::InProcess(runner @ None) = &mut self.runner {
            let options = SubjectOptions { seed: plan.seed, threads: plan.threads, cache: None };
            self.session.note("computing the reference results");
            let mut subject = Subject::new(self.kernel, &plan.dims, Arc::clone(&plan.device), &options)?;
            subject.set_cache(plan.cache);
            let anchors = Anchors::of_earlier(&self.earlier);
            *runner = Some(Box::new(InProcessRunner::new(subject, self.interrupt.clone(), anchors)));
        }
        let default = default_with_rules(&plan.task.program, &plan.task.context, &plan.spec);
        let mut default_seconds = None;
        if let Some((candidate, rules)) = &default {
            match self.earlier.iter().find(|record| record.trace == candidate.trace) {
                Some(record) => default_seconds = record.seconds,
                None if !has_room || self.session.is_over() => {}
                None => {
                    let measured = self.runner.get().measure(std::slice::from_ref(candidate)).pop();
                    if let Some(Some(measurement)) = measured {
                        let rules: Vec<String> = rules.iter().map(|&name| name.to_owned()).collect();
                        default_seconds = self.session.measured_default(candidate, &rules, &measurement);
                        let trace = candidate.trace.clone();
                        self.earlier.push(Earlier { trace, seconds: default_seconds, rules: Some(rules) });
                    }
                }
            }
        }
        let options = TuneOptions {
            time_limit: plan.time_limit,
            seed: plan.seed,
            roofline_seconds: plan.roofline_seconds(),
            stops_when_converged: plan.stops_when_converged,
            ..TuneOptions::default()
        };
        let strategy = MakeStrategy::clone(&method.strategy);
        let method = Method { spec: &plan.spec, strategy, starts: (method.starts)(&plan) };
        let mut tuner = TaskTuner::new(plan.task.clone(), &method, options);
        tuner.remember(&self.earlier, model);
        let default = default.map(|(candidate, _)| candidate);
        self.search = Some(Search { tuner, default, default_seconds });
        self.check_runner()
    }

    fn check_runner(&mut self) -> Result<(), TuneError> {
        match &mut self.runner {
            JobRunner::Isolated(runner) => Ok(runner.take_failure().map_or(Ok(()), Err)?),
            JobRunner::InProcess(_) => Ok(()),
        }
    }

    /// Gives back memory and processes that only measuring needs.
    pub(super) fn rest(&mut self) {
        if let JobRunner::Isolated(runner) = &mut self.runner {
            runner.rest();
        }
    }

    /// Confirms the result. A job that had no round gives the results of earlier runs.
    pub(super) fn finish(
        mut self,
        end: End,
        model: &mut dyn CostModel,
        method: &MethodParts,
    ) -> Result<Tuned, TuneError> {
        if self.search.is_none() {
            if self.earlier.is_empty() {
                return Ok(self.session.not_reached(end));
            }
            self.session.resume(Some(0));
            self.begin(false, model, method)?;
        } else {
            self.session.resume(Some(0));
        }
        let Some(Search { tuner, default, default_seconds }) = self.search.take() else {
            unreachable!("it has begun")
        };
        let result = tuner.finish(end, self.runner.get());
        let mut found = Found { default_seconds, result };
        if let (Some(default), true) = (default, found.result.trials > 0) {
            found.compare_with_default(default, self.runner.get());
        }
        self.check_runner()?;
        self.rest();
        self.session.finish(found)
    }
}

impl JobRunner {
    fn get(&mut self) -> &mut dyn Runner {
        match self {
            JobRunner::Isolated(runner) => runner.as_mut(),
            JobRunner::InProcess(runner) => {
                runner.as_mut().expect("the subject is prepared before anything is measured").as_mut()
            }
        }
    }
}

/// Gives the traces that a plan's search begins with.
type Starts = Box<dyn Fn(&Plan) -> Vec<Start>>;

/// The strategy, the cost model and the other parts of a job's search, besides those of its space.
pub(super) struct MethodParts {
    pub(super) strategy: MakeStrategy,
    /// The traces that a search begins with.
    pub(super) starts: Starts,
}

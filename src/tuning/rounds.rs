//! The rounds of a tuning run: which job gets the next one, and how each job ended.

use std::time::Instant;

use tilewright_measure::runner::Interrupt;
use tilewright_search::model::CostModel;
use tilewright_search::scheduler::{Budget, Policy, Round, Scheduler};
use tilewright_search::tuner::{BATCH, End};

use super::job::{Job, MethodParts};
use super::session::Observers;
use super::{Coverage, Covered, TuneError};
use crate::records;

/// A job and its state.
struct State<'a> {
    job: Job<'a>,
    /// Why it gets no more rounds.
    end: Option<End>,
    /// The error that ended it.
    failure: Option<TuneError>,
}

/// Jobs under one budget.
pub(super) struct Rounds<'a> {
    states: Vec<State<'a>>,
    scheduler: Scheduler,
    interrupt: Interrupt,
}

impl<'a> Rounds<'a> {
    /// Jobs with their weights. Measurements of earlier runs count as part of a budget of trials.
    pub(super) fn new(
        jobs: Vec<(Job<'a>, f64)>,
        policy: Policy,
        budget: Budget,
        interrupt: Interrupt,
    ) -> Self {
        let earlier: usize = jobs.iter().map(|(job, _)| job.earlier()).sum();
        let trials = budget.trials.map(|trials| trials.saturating_sub(earlier));
        let mut scheduler = Scheduler::new(policy, Budget { trials, ..budget }, BATCH);
        let mut states = Vec::new();
        for (job, weight) in jobs {
            scheduler.add(job.facts(weight));
            states.push(State { job, end: None, failure: None });
        }
        Rounds { states, scheduler, interrupt }
    }

    /// Gives each job its rounds, and finishes them.
    pub(super) fn run(
        mut self,
        model: &mut dyn CostModel,
        method: &MethodParts,
        observers: &Observers,
    ) -> Result<Coverage, TuneError> {
        let mut last = None;
        while !self.interrupt.is_due()
            && let Some(next) = self.scheduler.next_round()
        {
            if let Some(last) = last.replace(next.task)
                && last != next.task
            {
                self.states[last].job.rest();
            }
            let left = self.scheduler.trials_left();
            let round = self.states[next.task].round(next.trials, left, model, method);
            self.scheduler.record(next.task, round);
        }
        let why = self.why();
        let mut coverage = Coverage::default();
        for state in self.states {
            let title = state.job.title();
            let result = state.finish(why, model, method);
            if let Ok(tuned) = &result {
                if let Some(record) = &tuned.record {
                    records::use_record(record.clone())?;
                }
                observers.borrow_mut().iter_mut().for_each(|observer| observer.finished(tuned));
            }
            coverage.tasks.push(Covered { title, result });
        }
        Ok(coverage)
    }

    /// Why the jobs have ended that had no reason of their own.
    fn why(&self) -> End {
        match (self.interrupt.is_stopped(), self.interrupt.is_due()) {
            (true, _) => End::Stopped,
            (false, true) => End::Time,
            (false, false) if self.scheduler.time_left().is_some_and(|left| left.is_zero()) => End::Time,
            (false, false) => End::Trials,
        }
    }
}

impl State<'_> {
    /// One round of up to `count` trials, of which the whole run has `left`. A job that fails gets no other.
    fn round(
        &mut self,
        trials: usize,
        left: Option<usize>,
        model: &mut dyn CostModel,
        method: &MethodParts,
    ) -> Round {
        let (start, before) = (Instant::now(), self.job.trials());
        match self.job.round(trials, left, model, method) {
            Ok(round) => {
                self.end = round.end;
                round
            }
            Err(error) => {
                self.failure = Some(error);
                let (trials, elapsed) = (self.job.trials() - before, start.elapsed());
                Round { trials, elapsed, best: None, end: Some(End::Exhausted) }
            }
        }
    }

    fn finish(
        self,
        why: End,
        model: &mut dyn CostModel,
        method: &MethodParts,
    ) -> Result<super::Tuned, TuneError> {
        match self.failure {
            Some(failure) => Err(failure),
            None => self.job.finish(self.end.unwrap_or(why), model, method),
        }
    }
}

//! The tuning loop: propose, measure, learn, until the budget is spent.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tilewright_core::program::Program;
use tilewright_core::schedule::Trace;
use tilewright_core::target::Target;

use crate::candidate::{Candidate, Generator, Statistics};
use crate::evolution::{Evolution, EvolutionOptions};
use crate::model::{CostModel, Sample};
use crate::rule::RuleSet;
use crate::space::design_spaces;

/// One kernel at one shape on one machine.
#[derive(Clone, Debug)]
pub struct Task {
    /// Separates the samples of different tasks in the cost model.
    pub id: u64,
    /// The unscheduled program, with every dimension bound.
    pub program: Program,
    /// The machine.
    pub target: Arc<Target>,
}

/// How long to tune.
#[derive(Clone, Debug, PartialEq)]
pub struct TuneOptions {
    /// Most measurements.
    pub trials: usize,
    /// Most time, generation and measurement together.
    pub time_limit: Option<Duration>,
    /// Equal seeds and equal measurements make equal searches.
    pub seed: u64,
    /// Measurements between two refits of the model.
    pub batch: usize,
    /// The time below which no candidate can get, in seconds: tuning stops close to it.
    pub roofline_seconds: Option<f64>,
    /// The sizes of the search.
    pub evolution: EvolutionOptions,
}

impl Default for TuneOptions {
    fn default() -> Self {
        TuneOptions {
            trials: 64,
            time_limit: None,
            seed: 1,
            batch: 16,
            roofline_seconds: None,
            evolution: EvolutionOptions::default(),
        }
    }
}

/// Tuning stops when the best candidate is this close to the roofline.
const ROOFLINE_SHARE: f64 = 0.97;

/// Whether a time is as close to the roofline as it can get. A time below the roofline shows that this was measured
/// while the machine was held back, and says nothing.
fn is_at_roofline(best: f64, roofline: f64) -> bool {
    (ROOFLINE_SHARE..=1.0).contains(&(roofline / best))
}

/// What became of one measurement.
#[derive(Clone, Debug, PartialEq)]
pub enum Measurement {
    /// The candidate ran and its results are right.
    Ok {
        /// The typical time of an undisturbed run, in seconds.
        seconds: f64,
        /// The spread of the runs: the distance of the quartiles over the median.
        spread: f64,
        /// The largest relative error against the reference.
        max_relative_error: f64,
    },
    /// It did not: it could not be built, gave wrong results, crashed or took too long.
    Failed {
        /// A short, stable word for statistics.
        reason: String,
        /// What happened.
        message: String,
    },
}

/// Builds, checks and measures candidates.
pub trait Runner {
    /// One measurement for each candidate, in order; `None` for those that were not reached because it was to
    /// stop.
    fn measure(&mut self, candidates: &[Candidate]) -> Vec<Option<Measurement>>;

    /// Measures two candidates in alternation and gives both times in seconds; `None` when that failed.
    fn compare(&mut self, first: &Candidate, second: &Candidate) -> Option<(f64, f64)>;
}

/// Follows the progress of tuning, and may end it.
pub trait Observer {
    /// Called after each measurement. `trial` counts from 1.
    fn measured(&mut self, trial: usize, candidate: &Candidate, measurement: &Measurement, elapsed: Duration);

    /// Whether to stop now, keeping what was measured.
    fn should_stop(&self) -> bool;
}

/// A record of an earlier run with which to go on.
#[derive(Clone, Debug)]
pub struct Earlier {
    /// The whole trace.
    pub trace: Trace,
    /// The time in seconds, or `None` when it failed.
    pub seconds: Option<f64>,
}

/// What tuning has found.
#[derive(Debug)]
pub struct TuneResult {
    /// The fastest candidate with its time in seconds.
    pub best: Option<(Candidate, f64)>,
    /// The best candidates with their times, the best first, when they were all timed once more in alternation.
    pub confirmed: Vec<(Candidate, f64)>,
    /// Measurements made, without those of earlier runs.
    pub trials: usize,
    /// The time spent.
    pub elapsed: Duration,
    /// The time spent on generating candidates.
    pub generation: Duration,
    /// Each improvement: after how many seconds, and the time reached, in seconds.
    pub curve: Vec<(f64, f64)>,
    /// Candidates generated and refused.
    pub statistics: Statistics,
    /// Why it ended.
    pub end: End,
}

/// Why tuning ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The trials are used up.
    Trials,
    /// The time is used up.
    Time,
    /// The observer asked.
    Stopped,
    /// No new candidates were found.
    Exhausted,
    /// The best is as fast as the machine allows.
    Roofline,
}

/// The state of one tuning run.
struct Run<'a> {
    task: &'a Task,
    options: &'a TuneOptions,
    evolution: Evolution,
    start: Instant,
    result: TuneResult,
    /// The fastest candidates so far, fastest first.
    leaders: Vec<(Candidate, f64)>,
}

/// How many of the fastest candidates are kept for the final comparison.
const LEADERS: usize = 4;

/// Tunes a task.
pub fn tune(
    task: &Task,
    rules: &RuleSet,
    model: &mut dyn CostModel,
    runner: &mut dyn Runner,
    observer: &mut dyn Observer,
    earlier: &[Earlier],
    options: &TuneOptions,
) -> TuneResult {
    let start = Instant::now();
    let generator = Generator { program: task.program.clone(), target: task.target.clone() };
    let spaces = design_spaces(&task.program, &task.target, rules, options.seed);
    let evolution = Evolution::new(generator.clone(), spaces, options.evolution.clone(), options.seed);
    let result = TuneResult {
        best: None,
        confirmed: Vec::new(),
        trials: 0,
        elapsed: Duration::ZERO,
        generation: start.elapsed(),
        curve: Vec::new(),
        statistics: Statistics::default(),
        end: End::Trials,
    };
    let mut run = Run { task, options, evolution, start, result, leaders: Vec::new() };
    run.remember(&generator, earlier, model);
    run.result.end = run.explore(model, runner, observer);
    if run.result.trials > 0 {
        run.confirm(runner);
    }
    run.finish()
}

impl Run<'_> {
    /// Replays what earlier runs measured, so that it is not measured again and the model knows it.
    fn remember(&mut self, generator: &Generator, earlier: &[Earlier], model: &mut dyn CostModel) {
        let mut samples = Vec::new();
        let mut ignored = Statistics::default();
        for record in earlier {
            let decisions = record.trace.without_postprocessing();
            let decide = |_: usize, step: &tilewright_core::schedule::Step| step.decision.clone();
            let Some(candidate) = generator.generate(0, &decisions, 0, decide, &mut ignored) else {
                continue;
            };
            samples.push(Sample {
                task: self.task.id,
                features: candidate.features.clone(),
                seconds: record.seconds,
            });
            match record.seconds {
                Some(seconds) => {
                    self.evolution.record(candidate.hash, 0, &candidate.decisions, seconds);
                    self.lead(candidate, seconds);
                }
                None => self.evolution.forget(candidate.hash),
            }
        }
        model.update(&samples);
    }

    fn explore(
        &mut self,
        model: &mut dyn CostModel,
        runner: &mut dyn Runner,
        observer: &mut dyn Observer,
    ) -> End {
        loop {
            if let Some(end) = self.ended(observer) {
                return end;
            }
            let generation = Instant::now();
            let count = self.options.batch.min(self.options.trials - self.result.trials);
            let candidates = self.evolution.propose(count, model);
            self.result.generation += generation.elapsed();
            if candidates.is_empty() {
                return End::Exhausted;
            }
            let mut samples = Vec::new();
            let measurements = runner.measure(&candidates);
            let is_cut_short = measurements.iter().any(Option::is_none);
            let measured = candidates.into_iter().zip(measurements);
            for (candidate, measurement) in measured.filter_map(|(candidate, m)| Some((candidate, m?))) {
                self.result.trials += 1;
                observer.measured(self.result.trials, &candidate, &measurement, self.start.elapsed());
                samples.push(self.learn(candidate, &measurement));
            }
            model.update(&samples);
            if is_cut_short {
                return if observer.should_stop() { End::Stopped } else { End::Time };
            }
        }
    }

    fn ended(&self, observer: &dyn Observer) -> Option<End> {
        let best = self.leaders.first().map(|(_, seconds)| *seconds);
        if observer.should_stop() {
            Some(End::Stopped)
        } else if self.result.trials >= self.options.trials {
            Some(End::Trials)
        } else if self.options.time_limit.is_some_and(|limit| self.start.elapsed() >= limit) {
            Some(End::Time)
        } else if best
            .zip(self.options.roofline_seconds)
            .is_some_and(|(best, roofline)| is_at_roofline(best, roofline))
        {
            Some(End::Roofline)
        } else {
            None
        }
    }

    fn learn(&mut self, candidate: Candidate, measurement: &Measurement) -> Sample {
        let seconds = match measurement {
            Measurement::Ok { seconds, .. } => Some(*seconds),
            Measurement::Failed { .. } => None,
        };
        let sample = Sample { task: self.task.id, features: candidate.features.clone(), seconds };
        if let Some(seconds) = seconds {
            self.evolution.record(candidate.hash, candidate.space, &candidate.decisions, seconds);
            if self.leaders.first().is_none_or(|(_, best)| seconds < *best) {
                self.result.curve.push((self.start.elapsed().as_secs_f64(), seconds));
            }
            self.lead(candidate, seconds);
        }
        sample
    }

    fn lead(&mut self, candidate: Candidate, seconds: f64) {
        let place = self.leaders.partition_point(|(_, other)| *other <= seconds);
        self.leaders.insert(place, (candidate, seconds));
        self.leaders.truncate(LEADERS);
    }

    /// Compares the best with the runner-up in alternation, since single measurements are noisy and the best
    /// of many is biased towards luck.
    fn confirm(&mut self, runner: &mut dyn Runner) {
        for challenger in 1..self.leaders.len() {
            let (best, other) = (&self.leaders[0].0, &self.leaders[challenger].0);
            let Some((best_seconds, other_seconds)) = runner.compare(best, other) else { return };
            self.leaders[0].1 = best_seconds;
            self.leaders[challenger].1 = other_seconds;
            if other_seconds < best_seconds {
                self.leaders.swap(0, challenger);
            }
        }
        self.result.confirmed = self.leaders.clone();
    }

    fn finish(mut self) -> TuneResult {
        self.result.elapsed = self.start.elapsed();
        self.result.statistics = self.evolution.statistics.clone();
        self.result.best = self.leaders.into_iter().next();
        self.result
    }
}

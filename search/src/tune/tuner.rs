//! The tuning loop: propose candidates, measure them, learn from the times, until the budget is spent.

use std::time::{Duration, Instant};

use tilewright_core::program::Program;
use tilewright_core::schedule::Trace;
use tilewright_core::target::RunContext;

use crate::explore::candidate::{Candidate, Generator, Statistics};
use crate::explore::strategy::{EvolutionOptions, MakeStrategy, SearchSpace, Strategy, evolutionary};
use crate::model::{CostModel, ProgramFeatures, Ranking, Sample};
use crate::space::spec::SearchSpec;
use crate::space::{RuleFault, generate_design_spaces};
use crate::tune::forecast::{Forecast, NOTABLE, forecast};

/// One kernel at one shape on one machine.
#[derive(Clone, Debug)]
pub struct Task {
    /// Separates the samples of different tasks in the cost model.
    pub id: u64,
    /// The unscheduled program, with every dimension bound.
    pub program: Program,
    /// The target, with the options of its runs.
    pub context: RunContext,
}

/// The budget of a search, and when it stops early.
#[derive(Clone, Debug, PartialEq)]
pub struct TuneOptions {
    /// The most trials; a trial measures one candidate.
    pub trials: usize,
    /// The most time, generation and measurement together.
    pub time_limit: Option<Duration>,
    /// Equal seeds and equal measurements make equal searches.
    pub seed: u64,
    /// Trials between two refits of the model.
    pub batch: usize,
    /// Threads that generate candidates; `None` for one on each core. Their number changes nothing but the time that
    /// generation takes.
    pub threads: Option<usize>,
    /// The roofline time, which no candidate beats, in seconds: tuning stops close to it.
    pub roofline_seconds: Option<f64>,
    /// Whether tuning stops when the forecast promises next to nothing.
    pub stops_when_converged: bool,
}

impl Default for TuneOptions {
    fn default() -> Self {
        TuneOptions {
            trials: 64,
            time_limit: None,
            seed: 1,
            batch: BATCH,
            threads: None,
            roofline_seconds: None,
            stops_when_converged: false,
        }
    }
}

/// The default number of trials between two refits of the model.
pub const BATCH: usize = 16;

/// Tuning has converged when this number of further trials has at most this chance of a notable improvement
/// ([`NOTABLE`](crate::tune::forecast::NOTABLE)).
const CONVERGED: (usize, f64) = (64, 0.02);

/// Tuning stops when the best candidate is this close to the roofline.
const ROOFLINE_SHARE: f64 = 0.97;

/// Whether a time is as close to the roofline as it can get. A time below the roofline shows that the roofline was measured
/// while the machine was busy, and says nothing.
fn is_at_roofline(best: f64, roofline: f64) -> bool {
    (ROOFLINE_SHARE..=1.0).contains(&(roofline / best))
}

/// The outcome of one trial.
#[derive(Clone, Debug, PartialEq)]
pub enum TrialOutcome {
    /// The candidate ran and its results are right.
    Ok {
        /// The typical time of an undisturbed run, in seconds.
        seconds: f64,
        /// The spread of the runs: the distance of the quartiles over the median.
        spread: f64,
        /// The largest relative error against the reference.
        max_relative_error: f64,
    },
    /// It could not be built, gave wrong results, crashed or took too long.
    Failed {
        /// A short, stable word for statistics.
        reason: String,
        /// The whole message.
        message: String,
    },
}

/// Builds, checks and measures candidates.
pub trait Runner {
    /// One outcome for each candidate, in order; `None` for each candidate that was not reached because measuring had to
    /// stop.
    fn measure(&mut self, candidates: &[Candidate]) -> Vec<Option<TrialOutcome>>;

    /// Measures two candidates in alternation and gives both times in seconds; `None` when that failed.
    fn compare(&mut self, first: &Candidate, second: &Candidate) -> Option<(f64, f64)>;
}

/// A trial: a candidate, its prediction, and the outcome.
#[derive(Clone, Copy, Debug)]
pub struct Trial<'a> {
    /// Counts from 1.
    pub number: usize,
    /// The candidate.
    pub candidate: &'a Candidate,
    /// The score that the cost model gave it; more is better.
    pub predicted: f32,
    /// The names of the rules that made its design space; `None` where they are not known, as for traces of other kernels.
    pub rules: Option<&'a [String]>,
    /// The outcome.
    pub outcome: &'a TrialOutcome,
    /// The time since tuning began.
    pub elapsed: Duration,
}

/// Follows the progress of tuning, and may end it.
pub trait TrialObserver {
    /// Called after each trial.
    fn measured(&mut self, trial: &Trial<'_>);

    /// Whether to stop now. The trials so far are kept.
    fn should_stop(&self) -> bool;
}

/// A record of an earlier run with which to go on.
#[derive(Clone, Debug)]
pub struct Earlier {
    /// The whole trace.
    pub trace: Trace,
    /// The time in seconds, or `None` when it failed.
    pub seconds: Option<f64>,
    /// The names of the rules that made its design space, where they are known.
    pub rules: Option<Vec<String>>,
}

/// The result of tuning.
#[derive(Debug)]
pub struct TuneResult {
    /// The fastest candidate with its time in seconds.
    pub best: Option<(Candidate, f64)>,
    /// The best candidates, the best first, with the times of a final comparison, in which they ran alternately.
    pub confirmed: Vec<(Candidate, f64)>,
    /// The trials, without those of earlier runs.
    pub trials: usize,
    /// The time spent.
    pub elapsed: Duration,
    /// The time spent on generating candidates.
    pub generation: Duration,
    /// Each improvement: the seconds since tuning began, and the new best time in seconds.
    pub curve: Vec<(f64, f64)>,
    /// Candidates generated and refused.
    pub statistics: Statistics,
    /// The ranking quality of the cost model in each round, before its candidates were measured.
    pub rankings: Vec<Ranking>,
    /// The forecast for as many trials again, and for at least 64.
    pub forecast: Option<Forecast>,
    /// Rules that misbehaved and were skipped.
    pub rule_faults: Vec<RuleFault>,
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
    /// The observer asked for it.
    Stopped,
    /// No new candidates were found.
    Exhausted,
    /// The best is as fast as the machine allows.
    Roofline,
    /// More trials promise next to nothing.
    Converged,
}

/// As a sentence's end: "stopped because …".
impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            End::Trials => "the trials are used up",
            End::Time => "the time is used up",
            End::Stopped => "it was stopped",
            End::Exhausted => "there are no new candidates",
            End::Roofline => "it is at the machine's limit",
            End::Converged => "more trials promise next to nothing",
        })
    }
}

/// The method of a search.
#[derive(Clone)]
pub struct Method<'a> {
    /// The search of the device.
    pub spec: &'a SearchSpec,
    /// Makes the strategy.
    pub strategy: MakeStrategy,
    /// Traces of other shapes and other kernels to begin with, the most promising first.
    pub starts: Vec<Start>,
}

/// A trace to begin with.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// The trace.
    pub trace: Trace,
    /// The names of the rules that made its design space, where they are known.
    pub rules: Option<Vec<String>>,
}

impl<'a> Method<'a> {
    /// Evolutionary search of a space.
    pub fn evolutionary(spec: &'a SearchSpec) -> Self {
        Method { spec, strategy: evolutionary(EvolutionOptions::default()), starts: Vec::new() }
    }
}

/// The tuning of one task, a round at a time.
pub struct TaskTuner {
    task: Task,
    options: TuneOptions,
    strategy: Box<dyn Strategy>,
    space: SearchSpace,
    /// The names of the rules that made each design space, then each trace that the search begins with, then the candidates of
    /// earlier runs, where they are known.
    rules: Vec<Option<Vec<String>>>,
    result: TuneResult,
    /// The fastest candidates so far, fastest first.
    leaders: Vec<(Candidate, f64)>,
    /// The best time after each trial of this run and earlier ones, in seconds.
    best_after: Vec<f64>,
}

/// The number of candidates in the final comparison.
const LEADERS: usize = 4;

/// Tunes one task until one of its options ends it, and confirms the best candidate.
pub fn tune(
    task: &Task,
    method: &Method<'_>,
    model: &mut dyn CostModel,
    runner: &mut dyn Runner,
    observer: &mut dyn TrialObserver,
    earlier: &[Earlier],
    options: &TuneOptions,
) -> TuneResult {
    let mut tuner = TaskTuner::new(task.clone(), method, options.clone());
    tuner.remember(earlier, model);
    let end = loop {
        let count = options.batch.min(options.trials.saturating_sub(tuner.result.trials));
        if let Some(end) = tuner.round(count, model, runner, observer) {
            break end;
        }
    };
    tuner.finish(end, runner)
}

impl TaskTuner {
    /// Makes the design spaces of a task.
    pub fn new(task: Task, method: &Method<'_>, options: TuneOptions) -> Self {
        let start = Instant::now();
        let made = generate_design_spaces(&task.program, &task.context, &method.spec.rules, options.seed);
        let generator = Generator::new(task.program.clone(), &task.context, method.spec.clone());
        let mut space = SearchSpace::new(generator, made.spaces, options.seed);
        space.starts = method.starts.iter().map(|start| start.trace.clone()).collect();
        if let Some(threads) = options.threads {
            space.threads = threads;
        }
        let result = TuneResult {
            best: None,
            confirmed: Vec::new(),
            trials: 0,
            elapsed: start.elapsed(),
            generation: start.elapsed(),
            curve: Vec::new(),
            statistics: Statistics::default(),
            rankings: Vec::new(),
            forecast: None,
            rule_faults: made.faults,
            end: End::Trials,
        };
        let strategy = (method.strategy)(space.clone());
        let named = |rules: Vec<&'static str>| Some(rules.into_iter().map(str::to_owned).collect());
        let of_starts = method.starts.iter().map(|start| start.rules.clone());
        let rules = made.rules.into_iter().map(named).chain(of_starts).collect();
        TaskTuner {
            task,
            options,
            strategy,
            space,
            rules,
            result,
            leaders: Vec::new(),
            best_after: Vec::new(),
        }
    }

    /// Replays the candidates of earlier runs, so that none is measured again and the model knows them.
    pub fn remember(&mut self, earlier: &[Earlier], model: &mut dyn CostModel) {
        let start = Instant::now();
        let mut samples = Vec::new();
        let mut ignored = Statistics::default();
        let (space, task) = (&self.space, self.task.id);
        let made = space.generate(earlier.len(), &mut ignored, |number, statistics| {
            space.replay(&earlier[number].trace, statistics)
        });
        for (candidate, record) in made.into_iter().zip(earlier) {
            let Some(mut candidate) = candidate else { continue };
            if let Some(rules) = &record.rules {
                candidate.space = self.space_of(rules);
            }
            samples.push(Sample { task, features: candidate.features.clone(), seconds: record.seconds });
            self.strategy.learn(&candidate, record.seconds);
            self.note_best(record.seconds);
            if let Some(seconds) = record.seconds {
                self.lead(candidate, seconds);
            }
        }
        model.update(&samples);
        self.result.elapsed += start.elapsed();
    }

    /// The number of a space for candidates of earlier runs that these rules made. Their mutations get the same number.
    fn space_of(&mut self, rules: &[String]) -> usize {
        let first = self.space.spaces.len() + self.space.starts.len();
        let known = self.rules[first..].iter().position(|known| known.as_deref() == Some(rules));
        first
            + known.unwrap_or_else(|| {
                self.rules.push(Some(rules.to_vec()));
                self.rules.len() - 1 - first
            })
    }

    /// Proposes up to `count` candidates, measures them and learns; gives the reason when tuning is over. A count of 0 ends
    /// tuning.
    pub fn round(
        &mut self,
        count: usize,
        model: &mut dyn CostModel,
        runner: &mut dyn Runner,
        observer: &mut dyn TrialObserver,
    ) -> Option<End> {
        let start = Instant::now();
        let before = self.result.elapsed;
        let end = self.is_over(count, observer).or_else(|| {
            let mut candidates = self.strategy.propose(count, model);
            // A strategy of another crate may propose more than was asked for.
            candidates.truncate(count);
            self.result.generation += start.elapsed();
            if candidates.is_empty() {
                return Some(End::Exhausted);
            }
            let features: Vec<ProgramFeatures> =
                candidates.iter().map(|candidate| candidate.features.clone()).collect();
            let mut scores = model.predict(&features);
            // A model of another crate may leave some out.
            scores.resize(candidates.len(), f32::NEG_INFINITY);
            let outcomes = runner.measure(&candidates);
            let is_cut_short = outcomes.iter().any(Option::is_none);
            let (mut samples, mut predicted) = (Vec::new(), Vec::new());
            let measured = candidates.into_iter().zip(scores).zip(outcomes);
            for ((candidate, score), outcome) in
                measured.filter_map(|(known, outcome)| Some((known, outcome?)))
            {
                self.result.trials += 1;
                self.result.elapsed = before + start.elapsed();
                observer.measured(&Trial {
                    number: self.result.trials,
                    candidate: &candidate,
                    predicted: score,
                    rules: self.rules.get(candidate.space).and_then(|rules| rules.as_deref()),
                    outcome: &outcome,
                    elapsed: self.result.elapsed,
                });
                predicted.push(score);
                samples.push(self.learn(candidate, &outcome));
            }
            let seconds: Vec<Option<f64>> = samples.iter().map(|sample| sample.seconds).collect();
            self.result.rankings.extend(Ranking::of(&predicted, &seconds));
            model.update(&samples);
            match (is_cut_short, observer.should_stop()) {
                (false, _) => None,
                (true, true) => Some(End::Stopped),
                (true, false) => Some(End::Time),
            }
        });
        self.result.elapsed = before + start.elapsed();
        end
    }

    /// Sets the roofline time, in seconds.
    pub fn set_roofline(&mut self, seconds: Option<f64>) {
        self.options.roofline_seconds = seconds;
    }

    /// The best time so far, in seconds.
    pub fn best_seconds(&self) -> Option<f64> {
        self.leaders.first().map(|(_, seconds)| *seconds)
    }

    /// The number of trials, without those of earlier runs.
    pub fn trials(&self) -> usize {
        self.result.trials
    }

    /// The forecast for a number of further trials.
    pub fn forecast(&self, trials: usize) -> Option<Forecast> {
        forecast(&self.best_after, trials, NOTABLE)
    }

    fn is_over(&self, count: usize, observer: &dyn TrialObserver) -> Option<End> {
        let is_near = |roofline: f64| self.best_seconds().is_some_and(|best| is_at_roofline(best, roofline));
        let has_converged = || {
            let (trials, chance) = CONVERGED;
            self.forecast(trials).is_some_and(|forecast| forecast.chance < chance)
        };
        if observer.should_stop() {
            Some(End::Stopped)
        } else if count == 0 {
            Some(End::Trials)
        } else if self.options.time_limit.is_some_and(|limit| self.result.elapsed >= limit) {
            Some(End::Time)
        } else if self.options.roofline_seconds.is_some_and(is_near) {
            Some(End::Roofline)
        } else if self.options.stops_when_converged && has_converged() {
            Some(End::Converged)
        } else {
            None
        }
    }

    fn learn(&mut self, candidate: Candidate, outcome: &TrialOutcome) -> Sample {
        let seconds = match outcome {
            TrialOutcome::Ok { seconds, .. } => Some(*seconds),
            TrialOutcome::Failed { .. } => None,
        };
        let sample = Sample { task: self.task.id, features: candidate.features.clone(), seconds };
        self.strategy.learn(&candidate, seconds);
        if let Some(seconds) = seconds {
            if self.best_seconds().is_none_or(|best| seconds < best) {
                self.result.curve.push((self.result.elapsed.as_secs_f64(), seconds));
            }
            self.lead(candidate, seconds);
        }
        self.note_best(seconds);
        sample
    }

    fn note_best(&mut self, seconds: Option<f64>) {
        let best = self.best_after.last().copied().unwrap_or(f64::INFINITY);
        self.best_after.push(best.min(seconds.unwrap_or(f64::INFINITY)));
    }

    fn lead(&mut self, candidate: Candidate, seconds: f64) {
        let place = self.leaders.partition_point(|(_, other)| *other <= seconds);
        self.leaders.insert(place, (candidate, seconds));
        self.leaders.truncate(LEADERS);
    }

    /// Times the best candidate and each other leader alternately, since a single measurement is noisy and the minimum of many is
    /// biased.
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

    /// Ends tuning: if there was a trial, the leaders are compared once more.
    pub fn finish(mut self, end: End, runner: &mut dyn Runner) -> TuneResult {
        let start = Instant::now();
        self.result.end = end;
        self.result.forecast = self.forecast(self.best_after.len().max(CONVERGED.0));
        if self.result.trials > 0 {
            self.confirm(runner);
        }
        self.result.elapsed += start.elapsed();
        self.result.statistics = self.strategy.statistics().clone();
        self.result.best = self.leaders.into_iter().next();
        self.result
    }
}

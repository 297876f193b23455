//! One tuning run: records and counts each measurement and reports it to the observers.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

use tilewright_core::schedule::Trace;
use tilewright_measure::runner::Interrupt;
use tilewright_search::candidate::Candidate;
use tilewright_search::records::{self, Database, DatabaseError, Outcome, Provenance, Record, Run};
use tilewright_search::tuner::{self, Earlier, TrialOutcome};

use super::observer::{Observer, Progress, Started};
use super::plan::{Found, Plan};
use super::{TuneError, Tuned};

/// Observers, shared by the sessions of a run.
pub(crate) type Observers = Rc<RefCell<Vec<Box<dyn Observer>>>>;

/// One task of a tuning run.
pub(crate) struct Session {
    plan: Rc<Plan>,
    database: Rc<RefCell<Database>>,
    interrupt: Interrupt,
    observers: Observers,
    /// The time spent on it until it last paused, and when it resumed.
    spent: Duration,
    resumed: Option<Instant>,
    has_started: bool,
    /// The most measurements to come.
    most: Option<usize>,
    cpu: String,
    /// Measurements of earlier runs.
    earlier: usize,
    /// Measurements of this run.
    trials: usize,
    best: Option<f64>,
    curve: Vec<(f64, f64)>,
    failures: BTreeMap<String, u64>,
    failure: Option<TuneError>,
}

/// The predictions for a candidate before it was measured.
#[derive(Clone, Copy)]
struct Foreknowledge<'a> {
    predicted: Option<f32>,
    rules: Option<&'a [String]>,
}

impl Session {
    pub(crate) fn new(
        plan: Rc<Plan>,
        database: Rc<RefCell<Database>>,
        interrupt: Interrupt,
        observers: Observers,
    ) -> Self {
        let cpu = plan.device.label().to_owned();
        Session {
            plan,
            database,
            interrupt,
            observers,
            spent: Duration::ZERO,
            resumed: None,
            has_started: false,
            most: None,
            cpu,
            earlier: 0,
            trials: 0,
            best: None,
            curve: Vec::new(),
            failures: BTreeMap::new(),
            failure: None,
        }
    }

    /// The measurements of earlier runs of this kernel at this shape on such a machine, each trace once: the last time counts.
    pub(crate) fn earlier(&mut self) -> Vec<Earlier> {
        let target = self.plan.tuned_for();
        let mut earlier: Vec<Earlier> = Vec::new();
        let database = self.database.borrow();
        let records = database.records_of(self.plan.hash);
        let plan = &self.plan;
        let is_own = |record: &&Record| {
            record.shape == plan.shape && record.target == target && record.provenance.cache == plan.cache
        };
        for record in records.filter(is_own) {
            let seconds = record.median_ns().map(|ns| ns * 1e-9);
            match earlier.iter_mut().find(|known| known.trace == record.trace) {
                Some(known) => known.seconds = seconds,
                None => {
                    let rules = record.provenance.rules.clone();
                    earlier.push(Earlier { trace: record.trace.clone(), seconds, rules });
                }
            }
        }
        self.earlier = earlier.len();
        self.best = earlier.iter().filter_map(|record| record.seconds).reduce(f64::min);
        earlier
    }

    pub(crate) fn started(&mut self, earlier: usize) {
        self.has_started = true;
        self.tell(|observer, started| observer.started(&Started { earlier, ..*started }));
    }

    /// Resumes, for at most `most` measurements of the whole run.
    pub(crate) fn resume(&mut self, most: Option<usize>) {
        self.most = most;
        self.resumed = Some(Instant::now());
        if self.has_started {
            self.tell(|observer, started| observer.resumed(started));
        }
    }

    /// Pauses.
    pub(crate) fn pause(&mut self) {
        self.spent = self.elapsed();
        self.resumed = None;
    }

    fn tell(&self, tell: impl Fn(&mut dyn Observer, &Started<'_>)) {
        let plan = &self.plan;
        let own = plan.trials.map(|trials| trials.saturating_sub(self.all_trials()));
        let trials = [own, self.most].into_iter().flatten().min();
        let started = Started {
            title: &plan.title,
            trials: trials.unwrap_or(usize::MAX),
            earlier: self.earlier,
            time_limit: plan.time_limit,
            flops: plan.flops,
            peak_gflops: plan.peak_gflops,
        };
        self.observers.borrow_mut().iter_mut().for_each(|observer| tell(observer.as_mut(), &started));
    }

    pub(crate) fn note(&mut self, text: &str) {
        self.observers.borrow_mut().iter_mut().for_each(|observer| observer.note(text));
    }

    /// Whether the session is over.
    pub(crate) fn is_over(&self) -> bool {
        self.failure.is_some()
            || self.plan.trials.is_some_and(|trials| self.all_trials() >= trials)
            || self.interrupt.is_due()
            || self.observers.borrow().iter().any(|observer| observer.should_stop())
    }

    /// The time spent on it.
    fn elapsed(&self) -> Duration {
        self.spent + self.resumed.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Measurements of this run.
    pub(crate) fn trials(&self) -> usize {
        self.trials
    }

    /// Measurements of this run and earlier ones.
    pub(crate) fn all_trials(&self) -> usize {
        self.earlier + self.trials
    }

    /// Records the measurement of the default schedule and gives its time in seconds.
    pub(crate) fn measured_default(
        &mut self,
        candidate: &Candidate,
        rules: &[String],
        measurement: &TrialOutcome,
    ) -> Option<f64> {
        self.note_measurement(
            &candidate.trace,
            measurement,
            Foreknowledge { predicted: None, rules: Some(rules) },
        );
        match measurement {
            TrialOutcome::Ok { seconds, .. } => Some(*seconds),
            TrialOutcome::Failed { .. } => None,
        }
    }

    /// Records a measurement first, then reports it.
    fn note_measurement(&mut self, trace: &Trace, measurement: &TrialOutcome, known: Foreknowledge<'_>) {
        let record = self.record(trace, measurement, known);
        let appended = self.append(record);
        if let Err(error) = appended {
            // A run that cannot record would only lose more.
            self.failure.get_or_insert(error.into());
            self.interrupt.stop();
        }
        self.trials += 1;
        match measurement {
            TrialOutcome::Ok { seconds, .. } => {
                if self.best.is_none_or(|best| *seconds < best) {
                    self.best = Some(*seconds);
                    self.curve.push((self.elapsed().as_secs_f64(), *seconds));
                }
            }
            TrialOutcome::Failed { reason, message } => {
                *self.failures.entry(reason.clone()).or_default() += 1;
                tracing::debug!(kernel = self.plan.title, reason, message, "a candidate failed");
            }
        }
        let (trial, best, elapsed) = (self.trials, self.best, self.elapsed());
        let progress = Progress { trial, measurement, best, elapsed };
        self.observers.borrow_mut().iter_mut().for_each(|observer| observer.measured(&progress));
    }

    /// Writes a record, and before the first one the program of the records.
    fn append(&mut self, record: Record) -> Result<(), DatabaseError> {
        let mut database = self.database.borrow_mut();
        if self.trials == 0 {
            database.append_program(&self.plan.name, &self.plan.definition)?;
        }
        database.append(record)
    }

    fn record(&self, trace: &Trace, measurement: &TrialOutcome, known: Foreknowledge<'_>) -> Record {
        let outcome = match measurement {
            TrialOutcome::Ok { seconds, spread, max_relative_error } => {
                Outcome::Measured(records::Measurement {
                    median_ns: seconds * 1e9,
                    spread: *spread,
                    max_rel_err: *max_relative_error,
                    is_confirmed: false,
                })
            }
            TrialOutcome::Failed { reason, message } => Outcome::Failed(format!("{reason}: {message}")),
        };
        Record {
            kernel: self.plan.name.clone(),
            program: self.plan.hash,
            shape: self.plan.shape.clone(),
            target: self.plan.tuned_for(),
            trace: trace.clone(),
            outcome,
            provenance: Provenance {
                seed: self.plan.seed,
                trial: (self.earlier + self.trials) as u64,
                version: env!("CARGO_PKG_VERSION").to_owned(),
                cpu: self.cpu.clone(),
                time: now(),
                predicted: known.predicted,
                rules: known.rules.map(<[String]>::to_vec),
                cache: self.plan.cache,
            },
        }
    }

    /// Records the times of the comparison at the end, the best first, so that look-ups choose the winner of the
    /// comparison. The best comes last: its record stands for those before it.
    fn confirm(&mut self, compared: &[(Candidate, f64)]) {
        for (place, (candidate, seconds)) in compared.iter().enumerate().rev() {
            let Some(mut record) = self.record_of(&candidate.trace) else { continue };
            if let Outcome::Measured(measurement) = &mut record.outcome {
                measurement.median_ns = seconds * 1e9;
                measurement.is_confirmed = place == 0;
            }
            record.provenance.time = now();
            let appended = self.database.borrow_mut().append(record);
            if let Err(error) = appended {
                self.failure.get_or_insert(error.into());
                return;
            }
        }
    }

    /// Makes the result of the run.
    pub(crate) fn finish(mut self, found: Found) -> Result<Tuned, TuneError> {
        self.confirm(&found.result.confirmed);
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let plan = Rc::clone(&self.plan);
        let best = found.result.best.as_ref();
        let reached = best.map(|(_, seconds)| plan.flops / seconds / 1e9);
        let (peak_gflops, peak_bandwidth) = (plan.peak(reached), plan.peak_bandwidth());
        if self.trials > 0 {
            let run = self.run(&found, peak_gflops, peak_bandwidth);
            let mut database = self.database.borrow_mut();
            database.append_run(run)?;
            database.sync()?;
        }
        let mut rejected = self.failures.clone();
        for (reason, count) in &found.result.statistics.rejected {
            *rejected.entry((*reason).to_owned()).or_default() += count;
        }
        let was_stopped = self.interrupt.is_due() || found.result.end == tuner::End::Stopped;
        if found.result.best.is_none() && !was_stopped {
            let (kernel, reasons) = (plan.title.clone(), most_frequent(&rejected));
            return Err(TuneError::NoCandidate { kernel, reasons });
        }
        let record = best.and_then(|(candidate, _)| self.record_of(&candidate.trace));
        let user_rules = record.as_ref().map_or_else(Vec::new, |record| plan.user_rules(record));
        Ok(Tuned {
            kernel: plan.name.clone(),
            shape: plan.shape.clone(),
            threads: plan.threads,
            record,
            best_seconds: best.map(|(_, seconds)| *seconds),
            best_trial_seconds: self.best,
            user_rules,
            default_seconds: found.default_seconds,
            trials: self.trials,
            earlier_trials: self.earlier,
            elapsed: self.elapsed(),
            generated: found.result.statistics.generated,
            generation: found.result.generation,
            curve: self.curve,
            rejected,
            end: found.result.end,
            forecast: found.result.forecast,
            rule_faults: found.result.rule_faults,
            flops: plan.flops,
            bytes: plan.bytes,
            peak_gflops,
            peak_bandwidth,
        })
    }

    /// The record of the run.
    fn run(&self, found: &Found, peak_gflops: Option<f64>, peak_bandwidth: Option<f64>) -> Run {
        let (plan, result) = (&self.plan, &found.result);
        let refused = result.statistics.rejected.iter();
        Run {
            kernel: plan.name.clone(),
            program: plan.hash,
            shape: plan.shape.clone(),
            target: plan.tuned_for(),
            cache: plan.cache,
            seed: plan.seed,
            earlier: self.earlier as u64,
            trials: self.trials as u64,
            seconds: self.elapsed().as_secs_f64(),
            generation_seconds: result.generation.as_secs_f64(),
            end: result.end.to_string(),
            best_ns: result.best.as_ref().map(|(_, seconds)| seconds * 1e9),
            default_ns: found.default_seconds.map(|seconds| seconds * 1e9),
            flops: plan.flops,
            bytes: plan.bytes,
            peak_gflops,
            peak_bandwidth,
            generated: result.statistics.generated,
            refused: refused.map(|(reason, count)| ((*reason).to_owned(), *count)).collect(),
            failed: self.failures.clone(),
            rounds: result.rankings.clone(),
            forecast: result.forecast,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            cpu: self.cpu.clone(),
            time: now(),
        }
    }

    /// The result where nothing was done.
    pub(crate) fn not_reached(self, end: tuner::End) -> Tuned {
        let plan = &self.plan;
        Tuned {
            kernel: plan.name.clone(),
            shape: plan.shape.clone(),
            threads: plan.threads,
            record: None,
            best_seconds: None,
            best_trial_seconds: None,
            user_rules: Vec::new(),
            default_seconds: None,
            trials: 0,
            earlier_trials: 0,
            elapsed: Duration::ZERO,
            generated: 0,
            generation: Duration::ZERO,
            curve: Vec::new(),
            rejected: BTreeMap::new(),
            end,
            forecast: None,
            rule_faults: Vec::new(),
            flops: plan.flops,
            bytes: plan.bytes,
            peak_gflops: plan.peak_gflops,
            peak_bandwidth: None,
        }
    }

    /// The last record of a trace.
    fn record_of(&self, trace: &Trace) -> Option<Record> {
        let database = self.database.borrow();
        let records = database.records_of(self.plan.hash);
        let same = |record: &&Record| {
            record.shape == self.plan.shape
                && record.trace == *trace
                && record.provenance.cache == self.plan.cache
                && record.median_ns().is_some()
        };
        records.filter(same).last().cloned()
    }
}

impl tuner::TrialObserver for Session {
    fn measured(&mut self, trial: &tuner::Trial<'_>) {
        let known = Foreknowledge { predicted: Some(trial.predicted), rules: trial.rules };
        self.note_measurement(&trial.candidate.trace, trial.outcome, known);
    }

    fn should_stop(&self) -> bool {
        self.failure.is_some()
            || self.interrupt.is_stopped()
            || self.observers.borrow().iter().any(|observer| observer.should_stop())
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |duration| duration.as_secs())
}

fn most_frequent(rejected: &BTreeMap<String, u64>) -> String {
    let mut reasons: Vec<_> = rejected.iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let texts: Vec<_> = reasons.iter().take(3).map(|(reason, count)| format!("{reason} ({count})")).collect();
    if texts.is_empty() { "no candidate was made".to_owned() } else { texts.join(", ") }
}

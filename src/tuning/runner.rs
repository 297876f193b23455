//! What the two ways of measuring share, and measuring in the tuning process itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use tilewright_search::candidate::Candidate;
use tilewright_search::tuner::{Measurement, Runner};

use super::measure::Measuring;
use super::protocol::{Outcome, Reply};
use super::subject::Subject;

/// Whether measuring is to end early, and the best time known: shared by a runner, the observer and Ctrl-C.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt {
    stop: Arc<AtomicBool>,
    /// A stop that others may order too, such as Ctrl-C.
    external: Option<Arc<AtomicBool>>,
    deadline: Option<Instant>,
    /// The bits of the best time in seconds; zero for none.
    best: Arc<AtomicU64>,
}

impl Interrupt {
    /// Nothing yet.
    pub(crate) fn new(deadline: Option<Instant>, external: Option<Arc<AtomicBool>>) -> Self {
        Interrupt { stop: Arc::default(), external, deadline, best: Arc::default() }
    }

    /// Orders to stop.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether somebody has ordered to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        let external = self.external.as_ref().is_some_and(|external| external.load(Ordering::Relaxed));
        external || self.stop.load(Ordering::Relaxed)
    }

    /// Whether to end early: ordered to, or out of time.
    pub(crate) fn is_due(&self) -> bool {
        self.is_stopped() || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// The best time known, in seconds.
    pub(crate) fn best(&self) -> Option<f64> {
        let best = f64::from_bits(self.best.load(Ordering::Relaxed));
        (best > 0.0).then_some(best)
    }

    /// Takes note of a time in seconds.
    pub(crate) fn improve(&self, seconds: f64) {
        if self.best().is_none_or(|best| seconds < best) {
            self.best.store(seconds.to_bits(), Ordering::Relaxed);
        }
    }
}

/// An outcome as the search knows it.
pub(crate) fn measurement(outcome: Outcome) -> Measurement {
    match outcome {
        Outcome::Measured { timing, error } => {
            Measurement::Ok { seconds: timing.median, spread: timing.spread, max_relative_error: error }
        }
        Outcome::Failed(failure) => failure.into(),
    }
}

/// Measures candidates in this process: one that crashes or hangs takes the program with it.
pub(crate) struct InProcessRunner<'b> {
    subject: Subject<'b>,
    interrupt: Interrupt,
}

impl<'b> InProcessRunner<'b> {
    /// A runner for a prepared subject.
    pub(crate) fn new(subject: Subject<'b>, interrupt: Interrupt) -> Self {
        InProcessRunner { subject, interrupt }
    }

    fn with(&mut self, emit: &mut dyn FnMut(Reply), work: impl FnOnce(&mut Measuring<'_, 'b>)) {
        let interrupt = self.interrupt.clone();
        let should_stop = || interrupt.is_due();
        work(&mut Measuring { subject: &self.subject, emit, should_stop: &should_stop });
    }
}

impl Runner for InProcessRunner<'_> {
    fn measure(&mut self, candidates: &[Candidate]) -> Vec<Option<Measurement>> {
        let traces: Vec<String> = candidates.iter().map(|candidate| candidate.trace.to_string()).collect();
        let mut outcomes = vec![None; candidates.len()];
        let (best, interrupt) = (self.interrupt.best(), self.interrupt.clone());
        let mut receive = |reply: Reply| {
            let Reply::Outcome { candidate, outcome } = reply else { return };
            if let Outcome::Measured { timing, .. } = &outcome {
                interrupt.improve(timing.median);
            }
            outcomes[candidate] = Some(measurement(outcome));
        };
        self.with(&mut receive, |measuring| measuring.measure(&traces, best));
        outcomes
    }

    fn compare(&mut self, first: &Candidate, second: &Candidate) -> Option<(f64, f64)> {
        let mut compared = None;
        let mut receive = |reply: Reply| {
            if let Reply::Compared(timings) = reply {
                compared = timings;
            }
        };
        let (first, second) = (first.trace.to_string(), second.trace.to_string());
        self.with(&mut receive, |measuring| measuring.compare(first, second));
        compared.map(|(first, second)| (first.median, second.median))
    }
}

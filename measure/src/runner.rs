//! The code that both ways of measuring share, and measuring in the tuning process itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tilewright_search::candidate::Candidate;
use tilewright_search::tuner::{Runner, TrialOutcome};

use crate::anchor::Anchors;
use crate::batch::Measuring;
use crate::isolation::protocol::{Outcome, Reply};
use crate::subject::Subject;

/// An order to end measuring early: shared by a runner, the session and Ctrl-C.
#[derive(Clone, Debug)]
pub struct Interrupt {
    stop: Arc<AtomicBool>,
    /// A stop flag that others may set too, such as Ctrl-C.
    external: Option<Arc<AtomicBool>>,
    deadline: Option<Instant>,
}

impl Interrupt {
    /// No order yet.
    pub fn new(deadline: Option<Instant>, external: Option<Arc<AtomicBool>>) -> Self {
        Interrupt { stop: Arc::default(), external, deadline }
    }

    /// Orders to stop.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether a stop has been ordered.
    pub fn is_stopped(&self) -> bool {
        let external = self.external.as_ref().is_some_and(|external| external.load(Ordering::Relaxed));
        external || self.stop.load(Ordering::Relaxed)
    }

    /// Whether to end early: a stop was ordered, or the time is up.
    pub fn is_due(&self) -> bool {
        self.is_stopped() || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// A result as the search knows it.
pub fn measurement(outcome: Outcome) -> TrialOutcome {
    match outcome {
        Outcome::Measured { timing, error } => {
            TrialOutcome::Ok { seconds: timing.median, spread: timing.spread, max_relative_error: error }
        }
        Outcome::Failed(failure) => failure.into(),
    }
}

/// Measures candidates in this process: one that crashes or hangs ends or blocks the program.
pub struct InProcessRunner {
    subject: Subject,
    interrupt: Interrupt,
    anchors: Anchors,
}

impl InProcessRunner {
    /// A runner for a prepared subject.
    pub fn new(subject: Subject, interrupt: Interrupt, anchors: Anchors) -> Self {
        InProcessRunner { subject, interrupt, anchors }
    }

    fn with(
        &mut self,
        is_over: fn(&Interrupt) -> bool,
        emit: &mut dyn FnMut(Reply),
        work: impl FnOnce(&mut Measuring<'_>),
    ) {
        let interrupt = self.interrupt.clone();
        let should_stop = || is_over(&interrupt);
        work(&mut Measuring { subject: &self.subject, emit, should_stop: &should_stop });
    }
}

impl Runner for InProcessRunner {
    fn measure(&mut self, candidates: &[Candidate]) -> Vec<Option<TrialOutcome>> {
        let traces: Vec<String> = candidates.iter().map(|candidate| candidate.trace.to_string()).collect();
        let mut outcomes = vec![None; candidates.len()];
        let anchors = self.anchors.to_vec();
        let mut receive = |reply: Reply| {
            let Reply::Outcome { candidate, outcome } = reply else { return };
            outcomes[candidate] = Some(measurement(outcome));
        };
        self.with(Interrupt::is_due, &mut receive, |measuring| measuring.measure(traces.clone(), &anchors));
        self.anchors.learn(&traces, &outcomes);
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
        // The best schedule is confirmed even when the time is up.
        self.with(Interrupt::is_stopped, &mut receive, |measuring| measuring.compare(first, second));
        compared.map(|(first, second)| (first.median, second.median))
    }
}

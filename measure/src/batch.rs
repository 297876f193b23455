//! A batch of candidates: compile all, run and check each, time the correct ones.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use tilewright_core::tensor::AnyTensor;
use tilewright_runtime::code::Compiled;

use crate::anchor::{Anchor, scale};
use crate::failure::{Failure, reason};
use crate::isolation::protocol::{Outcome, Reply, Stage};
use crate::sampling::{self, Runs};
use crate::subject::Subject;

/// A measurement in progress.
pub struct Measuring<'s> {
    /// The program of the candidates, with its arguments.
    pub subject: &'s Subject,
    /// Receives the events and results.
    pub emit: &'s mut dyn FnMut(Reply),
    /// Whether to end as soon as possible.
    pub should_stop: &'s dyn Fn() -> bool,
}

impl Measuring<'_> {
    /// Measures candidates given by their traces. A [`Reply::Outcome`] reports each that is done or has failed;
    /// candidates that were not reached before a stop have none.
    pub fn measure(&mut self, mut traces: Vec<String>, anchors: &[Anchor]) {
        (self.emit)(Reply::Begin(Stage::Compile));
        // Anchors are further candidates, whose results are not reported.
        let count = traces.len();
        traces.extend(anchors.iter().map(|anchor| anchor.trace.clone()));
        let mut executables = Vec::new();
        for (candidate, compiled) in self.compile(&traces).into_iter().enumerate() {
            match compiled {
                Ok(executable) => executables.push((candidate, executable)),
                Err(failure) if candidate < count => self.finished(candidate, Outcome::Failed(failure)),
                Err(_) => {}
            }
        }
        let (mut right, mut first_runs, mut errors) = (Vec::new(), Vec::new(), Vec::new());
        let mut tensors = self.subject.arguments();
        for (candidate, executable) in executables {
            if (self.should_stop)() {
                return;
            }
            match self.first_run(candidate, &executable, &mut tensors) {
                Ok((duration, error)) => {
                    first_runs.push((right.len(), duration.as_secs_f64()));
                    errors.push(error);
                    right.push((candidate, executable));
                }
                Err(failure) if candidate < count => self.finished(candidate, Outcome::Failed(failure)),
                Err(_) => {}
            }
        }
        let mut runs = Timed { measuring: self, executables: right, tensors };
        let numbers: Vec<usize> = runs.executables.iter().map(|(candidate, _)| *candidate).collect();
        let is_anchor: Vec<bool> = numbers.iter().map(|candidate| *candidate >= count).collect();
        let outcomes = sampling::sample(&mut runs, &first_runs, &is_anchor);
        let mut now = vec![None; anchors.len()];
        for (position, outcome) in &outcomes {
            if let (Some(anchor), Some(Ok(timing))) = (numbers[*position].checked_sub(count), outcome) {
                now[anchor] = Some(timing.median);
            }
        }
        let scale = scale(anchors, &now);
        for (position, outcome) in outcomes {
            let candidate = numbers[position];
            let outcome = match outcome {
                Some(Ok(timing)) => {
                    Outcome::Measured { timing: timing.scaled(scale), error: errors[position] }
                }
                Some(Err(failure)) => Outcome::Failed(failure),
                None => continue,
            };
            if candidate < count {
                self.finished(candidate, outcome);
            }
        }
    }

    /// Measures two candidates alternately; both are known to be right.
    pub fn compare(&mut self, first: String, second: String) {
        (self.emit)(Reply::Begin(Stage::Compile));
        let compiled: Result<Vec<_>, Failure> = self.compile(&[first, second]).into_iter().collect();
        let timings = compiled.and_then(|executables| {
            let executables = executables.into_iter().enumerate().collect();
            let tensors = self.subject.arguments();
            sampling::compare(&mut Timed { measuring: self, executables, tensors })
        });
        let timings = timings.unwrap_or_else(|failure| {
            tracing::debug!(reason = failure.reason, message = failure.message, "a comparison failed");
            None
        });
        (self.emit)(Reply::Compared(timings));
    }

    fn finished(&mut self, candidate: usize, outcome: Outcome) {
        (self.emit)(Reply::Outcome { candidate, outcome });
    }

    /// Compiles all at once, which shares fixed costs; one by one when that panics, to find the candidate that did.
    fn compile(&self, traces: &[String]) -> Vec<Result<Compiled, Failure>> {
        let together = guarded(|| Ok(self.subject.compile(traces)));
        together.unwrap_or_else(|_| {
            let alone = |trace| {
                guarded(|| self.subject.compile(std::slice::from_ref(trace)).pop().expect("one for one"))
            };
            traces.iter().map(alone).collect()
        })
    }

    /// Runs a candidate once and compares its results with the expected ones.
    fn first_run(
        &mut self,
        candidate: usize,
        executable: &Compiled,
        tensors: &mut [AnyTensor],
    ) -> Result<(Duration, f64), Failure> {
        self.subject.reset(tensors);
        (self.emit)(Reply::Begin(Stage::Run(candidate)));
        let subject = self.subject;
        guarded(|| {
            let duration = subject.run(executable, tensors, 1)?;
            Ok((duration, subject.check(tensors)?))
        })
    }
}

/// Turns a panic into a failure. The closure's data are either not used after a panic or made anew before
/// the next use.
fn guarded<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| Err(panic_failure(&*payload)))
}

fn panic_failure(payload: &(dyn Any + Send)) -> Failure {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    Failure::new(reason::PANIC, text.unwrap_or_else(|| "a panic without a message".to_owned()))
}

/// Executables by their position, with the numbers of their candidates.
struct Timed<'m, 's> {
    measuring: &'m mut Measuring<'s>,
    executables: Vec<(usize, Compiled)>,
    tensors: Vec<AnyTensor>,
}

impl Runs for Timed<'_, '_> {
    type Failure = Failure;

    fn run(&mut self, position: usize, repetitions: u64) -> Result<Duration, Failure> {
        let (candidate, executable) = &self.executables[position];
        let subject = self.measuring.subject;
        if subject.updates_in_place() {
            subject.reset(&mut self.tensors);
        }
        (self.measuring.emit)(Reply::Begin(Stage::Run(*candidate)));
        guarded(|| subject.run(executable, &mut self.tensors, repetitions))
    }

    fn should_stop(&self) -> bool {
        (self.measuring.should_stop)()
    }
}

//! Measuring in another process, so that a candidate costs at most itself.

use std::collections::VecDeque;
use std::process::Command;
use std::time::{Duration, Instant};

use tilewright_search::candidate::Candidate;
use tilewright_search::tuner::{Runner, TrialOutcome};

use super::process::{Awaited, Death, Process};
use super::protocol::{Reply, Request, Setup, Stage};
use crate::MeasureError;
use crate::anchor::Anchors;
use crate::failure::{Failure, reason};
use crate::runner::{Interrupt, measurement};

/// The time limits of actions, beyond which they count as hung. Only the running action counts, not those that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Starting the process and computing the reference.
    pub setup: Duration,
    /// Compiling one candidate.
    pub compile: Duration,
    /// One sample of one candidate.
    pub run: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            // A definition is plain Rust and may be slow; it is the user's own and known to end.
            setup: Duration::from_secs(1800),
            compile: Duration::from_secs(10),
            run: Duration::from_secs(10),
        }
    }
}

/// Measures candidates in a process of their own.
pub struct IsolatedRunner {
    command: Box<dyn FnMut() -> std::io::Result<Command>>,
    setup: Setup,
    limits: Limits,
    interrupt: Interrupt,
    anchors: Anchors,
    process: Option<Process>,
    number: u64,
    failure: Option<MeasureError>,
}

/// How a request ended.
enum End {
    /// It was done, or stopped on request.
    Done,
    /// The process died or was ended during an action.
    Lost { during: Option<Stage>, failure: Failure },
}

impl IsolatedRunner {
    /// A runner that starts measuring processes by `command`.
    pub fn new(
        command: impl FnMut() -> std::io::Result<Command> + 'static,
        setup: Setup,
        limits: Limits,
        interrupt: Interrupt,
    ) -> Self {
        IsolatedRunner {
            command: Box::new(command),
            setup,
            limits,
            interrupt,
            anchors: Anchors::default(),
            process: None,
            number: 0,
            failure: None,
        }
    }

    /// Sets the schedules to which the times of this run are relative.
    pub fn set_anchors(&mut self, anchors: Anchors) {
        self.anchors = anchors;
    }

    /// Ends the measuring process; the next measurement starts another.
    pub fn rest(&mut self) {
        self.process = None;
    }

    /// Why measuring is impossible, if it is.
    pub fn take_failure(&mut self) -> Option<MeasureError> {
        self.failure.take()
    }

    /// The process, started and set up if there is none.
    fn process(&mut self) -> Result<&mut Process, MeasureError> {
        if self.process.is_none() {
            let mut process = (self.command)()
                .and_then(|command| Process::start(command, &self.setup))
                .map_err(|error| MeasureError::Worker(format!("it cannot be started: {error}")))?;
            let deadline = Some(Instant::now() + self.limits.setup);
            match process.wait_for_reply(deadline, &mut |_| {}) {
                Awaited::Reply(Reply::Ready { reference_seconds }) => {
                    // A schedule may well be as slow as the definition.
                    self.limits.run = self.limits.run.max(Duration::from_secs_f64(reference_seconds));
                }
                Awaited::Reply(Reply::Error(message)) => return Err(MeasureError::Worker(message)),
                Awaited::Reply(reply) => return Err(unexpected(&reply)),
                Awaited::Garbage(text) => return Err(no_start(&format!("it sent {text}"))),
                Awaited::TimedOut => return Err(no_start("computing the reference takes too long")),
                Awaited::Died(death) => return Err(no_start(&death.to_string())),
            }
            self.process = Some(process);
        }
        Ok(self.process.as_mut().expect("there is one now"))
    }

    /// Sends a request about `count` candidates and passes on the replies, until it is done, `is_over` cuts it short,
    /// or the process is lost.
    fn request(
        &mut self,
        count: usize,
        request: &Request,
        is_over: fn(&Interrupt) -> bool,
        receive: &mut dyn FnMut(Reply),
    ) -> Result<End, MeasureError> {
        let (limits, interrupt, number) = (self.limits, self.interrupt.clone(), self.number);
        let process = self.process()?;
        process.send(request);
        let mut is_finishing = false;
        let mut stage = None;
        let mut deadline = Instant::now() + limits.compile;
        let failure = loop {
            let mut idle = |process: &mut Process| {
                if !is_finishing && is_over(&interrupt) {
                    is_finishing = true;
                    process.send(&Request::Finish { number });
                }
            };
            match process.wait_for_reply(Some(deadline), &mut idle) {
                Awaited::Reply(Reply::Done) => return Ok(End::Done),
                Awaited::Reply(Reply::Begin(next)) => {
                    let limit = match next {
                        Stage::Compile => limits.compile * u32::try_from(count).unwrap_or(u32::MAX),
                        Stage::Run(_) => limits.run,
                    };
                    stage = Some(next);
                    deadline = Instant::now() + limit;
                }
                Awaited::Reply(reply @ (Reply::Outcome { .. } | Reply::Compared(_))) => receive(reply),
                Awaited::Reply(Reply::Error(message)) => return Err(MeasureError::Worker(message)),
                Awaited::Reply(reply @ Reply::Ready { .. }) => return Err(unexpected(&reply)),
                Awaited::Garbage(text) => return Err(MeasureError::Worker(format!("it sent {text}"))),
                Awaited::Died(death) => break failure_of(&death),
                Awaited::TimedOut => {
                    let limit = deadline_text(&limits, stage);
                    break Failure::new(reason::HANG, format!("it did not come to an end in {limit}"));
                }
            }
        };
        self.process = None;
        Ok(End::Lost { during: stage, failure })
    }

    /// Measures candidates given by their traces: the results of those that were reached, and why others were not.
    pub fn measure_traces(
        &mut self,
        traces: &[String],
    ) -> (Vec<Option<TrialOutcome>>, Result<(), MeasureError>) {
        let mut outcomes = vec![None; traces.len()];
        let result = self.measure_all(traces, &mut outcomes);
        self.anchors.learn(traces, &outcomes);
        (outcomes, result)
    }

    /// Measures until every candidate has an outcome, with a new process whenever one is lost.
    fn measure_all(
        &mut self,
        traces: &[String],
        outcomes: &mut [Option<TrialOutcome>],
    ) -> Result<(), MeasureError> {
        // Batches of candidates still to be measured.
        let mut batches: VecDeque<Vec<usize>> = VecDeque::from([(0..traces.len()).collect()]);
        while let Some(batch) = batches.pop_front() {
            if batch.is_empty() || self.interrupt.is_due() {
                continue;
            }
            let End::Lost { during, failure } = self.measure_batch(&batch, traces, outcomes)? else {
                continue;
            };
            let open = |outcomes: &[Option<TrialOutcome>]| -> Vec<usize> {
                batch.iter().copied().filter(|&candidate| outcomes[candidate].is_none()).collect()
            };
            match during {
                Some(Stage::Run(culprit)) if culprit < batch.len() => {
                    outcomes[batch[culprit]] = Some(failure.into());
                    batches.push_front(open(outcomes));
                }
                Some(Stage::Run(_)) => {
                    // An anchor failed, although it has run before: it cannot be relied on.
                    self.anchors = Anchors::default();
                    batches.push_front(open(outcomes));
                }
                Some(Stage::Compile) | None => match open(outcomes)[..] {
                    [culprit] => outcomes[culprit] = Some(failure.into()),
                    // Measured one by one, the failing candidate shows.
                    ref several => {
                        several.iter().rev().for_each(|&candidate| batches.push_front(vec![candidate]));
                    }
                },
            }
        }
        Ok(())
    }

    /// Measures some of the candidates, and notes their results as far as they are known.
    fn measure_batch(
        &mut self,
        batch: &[usize],
        traces: &[String],
        outcomes: &mut [Option<TrialOutcome>],
    ) -> Result<End, MeasureError> {
        self.number += 1;
        let request = Request::Measure {
            number: self.number,
            traces: batch.iter().map(|&candidate| traces[candidate].clone()).collect(),
            anchors: self.anchors.to_vec(),
        };
        self.request(batch.len(), &request, Interrupt::is_due, &mut |reply| {
            let Reply::Outcome { candidate, outcome } = reply else { return };
            let Some(&candidate) = batch.get(candidate) else { return };
            outcomes[candidate] = Some(measurement(outcome));
        })
    }
}

impl Runner for IsolatedRunner {
    fn measure(&mut self, candidates: &[Candidate]) -> Vec<Option<TrialOutcome>> {
        let traces: Vec<String> = candidates.iter().map(|candidate| candidate.trace.to_string()).collect();
        let (outcomes, result) = self.measure_traces(&traces);
        if let Err(error) = result {
            // Others that share the interrupt may well be measured.
            self.failure = Some(error);
        }
        outcomes
    }

    fn compare(&mut self, first: &Candidate, second: &Candidate) -> Option<(f64, f64)> {
        if self.interrupt.is_stopped() {
            return None;
        }
        self.number += 1;
        let (first, second) = (first.trace.to_string(), second.trace.to_string());
        let request = Request::Compare { number: self.number, first, second };
        let mut timings = None;
        // The best schedule is confirmed even when the time is up.
        let end = self.request(2, &request, Interrupt::is_stopped, &mut |reply| {
            if let Reply::Compared(compared) = reply {
                timings = compared;
            }
        });
        match end {
            Ok(End::Done) => timings.map(|(first, second)| (first.median, second.median)),
            Ok(End::Lost { failure, .. }) => {
                tracing::warn!(reason = failure.reason, message = failure.message, "a comparison failed");
                None
            }
            Err(error) => {
                self.failure = Some(error);
                None
            }
        }
    }
}

fn failure_of(death: &Death) -> Failure {
    let reason = if death.is_out_of_memory() { reason::MEMORY } else { reason::CRASH };
    Failure::new(reason, death)
}

fn deadline_text(limits: &Limits, stage: Option<Stage>) -> String {
    let limit = if let Some(Stage::Run(_)) = stage { limits.run } else { limits.compile };
    format!("{:.1} s", limit.as_secs_f64())
}

/// The error of a measuring process that did not get as far as to measure.
fn no_start(problem: &str) -> MeasureError {
    MeasureError::Worker(format!("{problem}; is `tilewright::init()` the first thing that `main` does?"))
}

fn unexpected(reply: &Reply) -> MeasureError {
    MeasureError::Worker(format!("its reply is unexpected: {reply:?}"))
}

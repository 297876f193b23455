//! Observers of a tuning run.

use std::time::Duration;

use tilewright_search::tuner::TrialOutcome;

use super::Tuned;

/// Receives the events of a tuning run, and may end it. Every method has a default that does nothing.
pub trait Observer {
    /// Tuning begins.
    fn started(&mut self, _: &Started<'_>) {}

    /// Tuning continues with a kernel and shape that it began earlier: many tasks have rounds alternately.
    fn resumed(&mut self, _: &Started<'_>) {}

    /// A step that takes long begins; the text is for people.
    fn note(&mut self, _: &str) {}

    /// A candidate has been measured, and the measurement recorded.
    fn measured(&mut self, _: &Progress<'_>) {}

    /// Tuning is over.
    fn finished(&mut self, _: &Tuned) {}

    /// Whether to stop now. Measurements so far are kept.
    fn should_stop(&self) -> bool {
        false
    }
}

/// The facts that are known when tuning begins.
#[derive(Clone, Copy, Debug)]
pub struct Started<'a> {
    /// The kernel and its shape: `matmul[M=64, N=64, K=64]`.
    pub title: &'a str,
    /// Measurements to come, at most; `usize::MAX` where only time is limited.
    pub trials: usize,
    /// Measurements that earlier runs have recorded.
    pub earlier: usize,
    /// The time limit.
    pub time_limit: Option<Duration>,
    /// The arithmetic operations of one run.
    pub flops: f64,
    /// The greatest speed of the machine, in 10⁹ operations per second; `None` where it is not known, as for
    /// integers.
    pub peak_gflops: Option<f64>,
}

/// The state after a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// How many candidates this run has measured.
    pub trial: usize,
    /// The result of this candidate.
    pub measurement: &'a TrialOutcome,
    /// The best time so far, in seconds.
    pub best: Option<f64>,
    /// The time since tuning began.
    pub elapsed: Duration,
}

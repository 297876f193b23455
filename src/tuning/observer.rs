//! Following a tuning run.

use std::time::Duration;

use tilewright_search::tuner::TrialOutcome;

use super::Tuned;

/// Is told how tuning goes, and may end it. Every method has a default that does nothing.
pub trait Observer {
    /// Tuning begins.
    fn started(&mut self, _: &Started<'_>) {}

    /// Tuning goes on with a kernel and shape that it began with before: of many, each has a round now and then.
    fn resumed(&mut self, _: &Started<'_>) {}

    /// Something that takes long begins, for people.
    fn note(&mut self, _: &str) {}

    /// A candidate has been measured, and the measurement recorded.
    fn measured(&mut self, _: &Progress<'_>) {}

    /// Tuning is over.
    fn finished(&mut self, _: &Tuned) {}

    /// Whether to stop now. What was measured is kept.
    fn should_stop(&self) -> bool {
        false
    }
}

/// What is known when tuning begins.
#[derive(Clone, Copy, Debug)]
pub struct Started<'a> {
    /// The kernel and its shape: `matmul[M=64, N=64, K=64]`.
    pub title: &'a str,
    /// Measurements to come, at most; `usize::MAX` where only time is limited.
    pub trials: usize,
    /// Measurements that earlier runs have recorded.
    pub earlier: usize,
    /// The most time it may take.
    pub time_limit: Option<Duration>,
    /// The arithmetic operations of one run.
    pub flops: f64,
    /// Operations per second that the machine reaches at most, in 10⁹; `None` where it is not known, as for
    /// integers.
    pub peak_gflops: Option<f64>,
}

/// The state after a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// How many candidates this run has measured.
    pub trial: usize,
    /// What became of this one.
    pub measurement: &'a TrialOutcome,
    /// The best time so far, in seconds.
    pub best: Option<f64>,
    /// The time since tuning began.
    pub elapsed: Duration,
}

//! Results of tuning.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use tilewright_search::forecast::Forecast;
use tilewright_search::records::{Record, Shape};
use tilewright_search::space::RuleFault;
use tilewright_search::tuner::End;

/// The result of tuning a kernel at a shape.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Tuned {
    /// The kernel's name.
    pub kernel: String,
    /// The shape.
    pub shape: Shape,
    /// Threads that were used.
    pub threads: usize,
    /// The record of the best schedule; `None` when tuning was stopped before anything was measured.
    pub record: Option<Record>,
    /// The time of the best schedule, in seconds.
    pub best_seconds: Option<f64>,
    /// The time of the default schedule, in seconds, from the same comparison.
    pub default_seconds: Option<f64>,
    /// Measurements of this run.
    pub trials: usize,
    /// Measurements of earlier runs, taken from the records.
    pub earlier_trials: usize,
    /// The time that this run took.
    pub elapsed: Duration,
    /// Candidates that were generated, legal or not.
    pub generated: u64,
    /// The time spent on generating them.
    pub generation: Duration,
    /// Each improvement: the seconds until it, and its time, in seconds.
    pub curve: Vec<(f64, f64)>,
    /// The numbers of candidates that were refused, before or after they were compiled, by reason.
    pub rejected: BTreeMap<String, u64>,
    /// Why it ended.
    pub end: End,
    /// The gain to expect of as many further trials, at least 64; `None` without a time.
    pub forecast: Option<Forecast>,
    /// Schedule rules that misbehaved and were skipped.
    pub rule_faults: Vec<RuleFault>,
    /// The arithmetic operations of one run.
    pub flops: f64,
    /// The greatest speed of the machine, in 10⁹ operations per second, where known.
    pub peak_gflops: Option<f64>,
}

impl Tuned {
    /// The kernel and its shape: `matmul[M=64, N=64, K=64]`.
    pub fn title(&self) -> String {
        format!("{}[{}]", self.kernel, self.shape)
    }

    /// Operations per second of the best schedule, in 10⁹; `None` without one, or without operations to count.
    pub fn gflops(&self) -> Option<f64> {
        self.best_seconds.map(|seconds| self.flops / seconds / 1e9).filter(|&gflops| gflops > 0.0)
    }

    /// The share of the machine's peak that the best schedule reaches.
    pub fn share_of_peak(&self) -> Option<f64> {
        Some(self.gflops()? / self.peak_gflops?)
    }

    /// The greatest error of the best schedule, relative to the largest magnitude of the reference's results.
    pub fn error(&self) -> Option<f64> {
        Some(self.record.as_ref()?.measurement()?.max_rel_err)
    }

    /// The time of the default schedule over the time of the best one.
    pub fn speedup(&self) -> Option<f64> {
        Some(self.default_seconds? / self.best_seconds?)
    }
}

/// One line: `matmul[M=64, N=64, K=64]: 12.3 µs, 42.6 GFLOP/s, 61 % of peak, 1.4 × default, error 2.1e-7; 64 trials in 2.1 s`.
impl fmt::Display for Tuned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.title())?;
        match self.best_seconds {
            None => f.write_str("nothing measured")?,
            Some(seconds) => {
                f.write_str(&super::report::duration(seconds))?;
                if let Some(gflops) = self.gflops() {
                    write!(f, ", {gflops:.1} GFLOP/s")?;
                }
                if let Some(share) = self.share_of_peak() {
                    write!(f, ", {}", tilewright_measure::peak::percent_of_peak(share))?;
                }
                if let Some(speedup) = self.speedup() {
                    write!(f, ", {speedup:.2} × default")?;
                }
                if let Some(error) = self.error() {
                    write!(f, ", error {error:.1e}")?;
                }
            }
        }
        write!(f, "; {} trials in {:.1} s", self.trials, self.elapsed.as_secs_f64())?;
        if self.earlier_trials > 0 {
            write!(f, " after {} earlier ones", self.earlier_trials)?;
        }
        Ok(())
    }
}

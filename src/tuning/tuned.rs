//! Results of tuning.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use tilewright_measure::roofline::{Roofline, Share};
use tilewright_search::forecast::Forecast;
use tilewright_search::records::{Record, Shape};
use tilewright_search::space::RuleFault;
use tilewright_search::tuner::End;

use super::report::duration;

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
    /// The shortest time of any trial, in seconds. That of the best schedule was measured again, beside that of others, at the
    /// end.
    pub best_trial_seconds: Option<f64>,
    /// The schedule rules that made the best schedule's design space and are not built in.
    pub user_rules: Vec<String>,
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
    /// The bytes that one run must move.
    pub bytes: f64,
    /// The greatest speed of the machine, in 10⁹ operations per second, where known.
    pub peak_gflops: Option<f64>,
    /// The bandwidth of memory, in 10⁹ bytes per second, where known and where it may bound the kernel.
    pub peak_bandwidth: Option<f64>,
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

    /// The share that the best schedule reaches of the limit of the machine that bounds the kernel.
    pub fn share(&self) -> Option<Share> {
        let machine = Roofline { gflops: self.peak_gflops, bandwidth: self.peak_bandwidth };
        machine.share(self.flops, self.bytes, self.best_seconds?)
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
            Some(seconds) => self.write_best(f, seconds)?,
        }
        write!(f, "; {} trials in {:.1} s", self.trials, self.elapsed.as_secs_f64())?;
        if self.earlier_trials > 0 {
            write!(f, " after {} earlier ones", self.earlier_trials)?;
        }
        if self.end == End::Exhausted {
            f.write_str("; its space is exhausted: there are no other candidates")?;
        }
        Ok(())
    }
}

impl Tuned {
    fn write_best(&self, f: &mut fmt::Formatter<'_>, seconds: f64) -> fmt::Result {
        f.write_str(&duration(seconds))?;
        // The progress has shown the best trial, which may have been lucky.
        if let Some(trial) = self.best_trial_seconds.map(duration).filter(|trial| *trial != duration(seconds))
        {
            write!(f, " when compared again (the best trial took {trial})")?;
        }
        if let Some(gflops) = self.gflops() {
            write!(f, ", {gflops:.1} GFLOP/s")?;
        }
        if let Some(share) = self.share() {
            write!(f, ", {share}")?;
        }
        if let Some(speedup) = self.speedup() {
            write!(f, ", {speedup:.2} × default")?;
        }
        if let Some(error) = self.error() {
            write!(f, ", error {error:.1e}")?;
        }
        if !self.user_rules.is_empty() {
            write!(f, ", by the rules {}", self.user_rules.join(", "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuned() -> Tuned {
        Tuned {
            kernel: "norm".to_owned(),
            shape: Shape::of_dims([("N", 64)]),
            threads: 1,
            record: None,
            best_seconds: Some(2e-6),
            best_trial_seconds: Some(2e-6),
            user_rules: Vec::new(),
            default_seconds: Some(3e-6),
            trials: 8,
            earlier_trials: 0,
            elapsed: Duration::from_secs(1),
            generated: 9,
            generation: Duration::ZERO,
            curve: Vec::new(),
            rejected: BTreeMap::new(),
            end: End::Trials,
            forecast: None,
            rule_faults: Vec::new(),
            flops: 2e3,
            bytes: 1e4,
            peak_gflops: Some(100.0),
            peak_bandwidth: Some(10.0),
        }
    }

    #[test]
    fn a_line_says_how_good_the_best_is() {
        let text = tuned().to_string();
        assert_eq!(
            text,
            "norm[N=64]: 2.00 µs, 1.0 GFLOP/s, 50 % of memory bandwidth, 1.50 × default; 8 trials in 1.0 s"
        );
    }

    #[test]
    fn the_best_trial_is_told_where_it_was_not_confirmed() {
        let text = Tuned { best_trial_seconds: Some(1.5e-6), ..tuned() }.to_string();
        assert!(
            text.starts_with("norm[N=64]: 2.00 µs when compared again (the best trial took 1.50 µs), "),
            "{text}"
        );
    }

    #[test]
    fn rules_of_users_in_the_winner_are_named() {
        let text = Tuned { user_rules: vec!["strips".to_owned()], ..tuned() }.to_string();
        assert!(text.contains(", by the rules strips; 8 trials"), "{text}");
    }

    #[test]
    fn an_exhausted_space_is_told() {
        let text = Tuned { end: End::Exhausted, ..tuned() }.to_string();
        assert!(text.ends_with("; its space is exhausted: there are no other candidates"), "{text}");
    }
}

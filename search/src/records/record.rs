//! One trial.

use tilewright_core::schedule::Trace;

use super::{CacheState, Shape, TunedFor};

/// One trial: a schedule of a kernel for a shape and a machine, and the outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The kernel's name: letters, digits and underscores.
    pub kernel: String,
    /// [`stable_hash`](tilewright_core::program::Program::stable_hash) of the kernel's unscheduled program with
    /// symbolic dimensions. A change of the definition changes it, and old records are then no longer found.
    pub program: u64,
    /// The shape.
    pub shape: Shape,
    /// The machine that the code needs.
    pub target: TunedFor,
    /// The schedule, postprocessing included.
    pub trace: Trace,
    /// The outcome.
    pub outcome: Outcome,
    /// The origin of the record.
    pub provenance: Provenance,
}

/// The outcome of a trial.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It ran and its results were right.
    Measured(Measurement),
    /// It did not compile, crashed, hung or gave wrong results; the reason.
    Failed(String),
}

/// The time of a trial and its error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measurement {
    /// The median time of one call among the faster half of the samples, in nanoseconds; finite and above zero.
    pub median_ns: f64,
    /// The distance of the quartiles of the times, as a share of the median; finite, at least zero.
    pub spread: f64,
    /// The largest relative error against the reference; finite, at least zero.
    pub max_rel_err: f64,
    /// Whether this is the winner of the final comparison of a run, in which the best schedules ran alternately. Such a record
    /// replaces all earlier ones of its shape and machine.
    pub is_confirmed: bool,
}

/// The origin of a record, for people and for repeating a search; look-up does not depend on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Provenance {
    /// The seed of the search.
    pub seed: u64,
    /// The number of the trial in its search, from 0.
    pub trial: u64,
    /// The version of Tilewright.
    pub version: String,
    /// The CPU's model name.
    pub cpu: String,
    /// When it was measured, in seconds since 1970.
    pub time: u64,
    /// The score that the cost model gave it before it was measured, where it did: more is better, and only scores of one
    /// round of a search compare.
    pub predicted: Option<f32>,
    /// The names of the schedule rules that made its design space, in the order of their application, where they are known.
    pub rules: Option<Vec<String>>,
    /// Where the operands were when it was measured.
    pub cache: CacheState,
}

impl Record {
    /// The measurement of a trial that succeeded.
    pub fn measurement(&self) -> Option<&Measurement> {
        match &self.outcome {
            Outcome::Measured(measurement) => Some(measurement),
            Outcome::Failed(_) => None,
        }
    }

    /// The median time of a call in nanoseconds, of a trial that succeeded.
    pub fn median_ns(&self) -> Option<f64> {
        self.measurement().map(|measurement| measurement.median_ns)
    }
}

impl Measurement {
    pub(super) fn is_sound(&self) -> bool {
        let at_least_zero = |value: f64| value.is_finite() && value >= 0.0;
        at_least_zero(self.median_ns)
            && self.median_ns > 0.0
            && at_least_zero(self.spread)
            && at_least_zero(self.max_rel_err)
    }
}

/// Whether a text may be the name of a kernel, and thus of a file.
pub(super) fn is_kernel_name(name: &str) -> bool {
    // File systems commonly limit names to 255 bytes; the extension and a temporary suffix need some.
    !name.is_empty() && name.len() <= 200 && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

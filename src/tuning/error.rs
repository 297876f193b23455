//! Errors of tuning.

use std::io;
use std::path::PathBuf;

use tilewright_measure::MeasureError;
use tilewright_measure::subject::OracleError;
use tilewright_search::records::DatabaseError;
use tilewright_search::rule::RuleSetError;
use tilewright_search::spec::SpecError;

use crate::Error;

/// Why a kernel could not be tuned. Earlier measurements are recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuneError {
    /// The kernel, its dimensions or the environment prevent it.
    #[error(transparent)]
    Kernel(#[from] Error),
    /// The records cannot be read or written.
    #[error(transparent)]
    Records(#[from] DatabaseError),
    /// The schedule rules cannot be put in order.
    #[error(transparent)]
    Rules(#[from] RuleSetError),
    /// There is no search for the target.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// Nothing can be measured.
    #[error(transparent)]
    Measure(#[from] MeasureError),
    /// There is nothing to compare results with.
    #[error(transparent)]
    Oracle(#[from] OracleError),
    /// A file of a report cannot be written.
    #[error("cannot write `{}`: {source}", .path.display())]
    Report {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A task's weight is no number of runs.
    #[error("`{kernel}` has the weight {weight}: expected a finite number of at least 0")]
    Weight {
        /// The kernel and its shape.
        kernel: String,
        /// The weight.
        weight: f64,
    },
    /// A directory for intermediate results cannot be made.
    #[error("cannot make a temporary directory: {0}")]
    Temporary(#[source] io::Error),
    /// A variant of a kernel that a benchmark compares cannot be compiled, fails or gives wrong results.
    #[error("`{kernel}` cannot be compared: {problem}")]
    Variant {
        /// The kernel.
        kernel: String,
        /// The problem.
        problem: String,
    },
    /// No schedule of the kernel could be measured.
    #[error("no schedule of `{kernel}` could be measured; most were refused for: {reasons}")]
    NoCandidate {
        /// The kernel and its shape.
        kernel: String,
        /// The most frequent reasons, with their counts.
        reasons: String,
    },
}

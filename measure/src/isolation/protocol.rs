//! What the tuner and its measuring process say to each other: one JSON object a line.
//!
//! Lines of the measuring process begin with [`MARK`], since the program's own code may print to the same
//! stream before `init` takes over.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::anchor::Anchor;
use crate::failure::Failure;
use crate::sampling::Timing;
use crate::subject::Oracle;

/// Begins each line that the measuring process sends.
pub const MARK: &str = "tilewright> ";

/// From the tuner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Prepare to measure a kernel at a shape.
    Setup(Setup),
    /// Measure candidates.
    Measure {
        /// The number of this request, counting up.
        number: u64,
        /// Their traces, postprocessing included.
        traces: Vec<String>,
        /// What their times are relative to.
        anchors: Vec<Anchor>,
    },
    /// Measure two candidates in alternation.
    Compare {
        /// The number of this request, counting up.
        number: u64,
        /// The trace of one.
        first: String,
        /// The trace of the other.
        second: String,
    },
    /// End a request as soon as possible, with what has been measured.
    Finish {
        /// Its number.
        number: u64,
    },
}

/// What to measure, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// What candidates are schedules of.
    pub of: Source,
    /// The name of the device that candidates run on.
    pub device: String,
    /// Threads that a run uses.
    pub threads: usize,
    /// Decides the arguments.
    pub seed: u64,
    /// Where expected results are kept, if anywhere.
    pub cache: Option<std::path::PathBuf>,
    /// The most memory that the process may use, in bytes.
    pub memory: u64,
}

/// What candidates are schedules of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A kernel of this program at a shape.
    Kernel {
        /// The module and the name of the kernel, as `module::name`.
        kernel: String,
        /// The hash of its unscheduled program, in hexadecimal digits.
        program: String,
        /// Its dimensions and `usize` arguments.
        dims: BTreeMap<String, i64>,
    },
    /// A program beside records.
    Program {
        /// Its text, with its dimensions bound.
        text: String,
        /// What its results are compared with.
        oracle: Oracle,
    },
}

/// From the measuring process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The setup is done.
    Ready {
        /// How long computing the reference took, in seconds.
        reference_seconds: f64,
    },
    /// Something begins that may take time or go wrong.
    Begin(Stage),
    /// What became of a candidate.
    Outcome {
        /// Its position in the request.
        candidate: usize,
        /// Its time, or why it has none.
        outcome: Outcome,
    },
    /// What became of a comparison; none when it was ended early.
    Compared(Option<(Timing, Timing)>),
    /// The request is done.
    Done,
    /// The request cannot be done, and no other one could.
    Error(String),
}

/// What the measuring process is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Compile everything that was asked for.
    Compile,
    /// Run a candidate, by its position in the request.
    Run(usize),
}

/// What became of a candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It ran and its results are right.
    Measured {
        /// How long a run takes.
        timing: Timing,
        /// The greatest relative error.
        error: f64,
    },
    /// It did not.
    Failed(Failure),
}

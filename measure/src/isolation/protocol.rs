//! The messages between the tuner and its measuring process: one JSON object a line.
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

/// A message from the tuner.
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
        /// The schedules to which their times are relative.
        anchors: Vec<Anchor>,
    },
    /// Measure two candidates alternately.
    Compare {
        /// The number of this request, counting up.
        number: u64,
        /// The trace of the first.
        first: String,
        /// The trace of the second.
        second: String,
    },
    /// End a request as soon as possible, with the measurements so far.
    Finish {
        /// Its number.
        number: u64,
    },
}

/// The measurements to make, and their options.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// The program of the candidates.
    pub of: Source,
    /// The name of the device that candidates run on.
    pub device: String,
    /// Threads that a run uses.
    pub threads: usize,
    /// The seed of the arguments.
    pub seed: u64,
    /// Where expected results are kept, if anywhere.
    pub cache: Option<std::path::PathBuf>,
    /// The most memory that the process may use, in bytes.
    pub memory: u64,
    /// Whether operands are evicted from the caches before each run.
    pub cold: bool,
}

/// The program of the candidates.
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
    /// A program that is stored beside records.
    Program {
        /// Its text, with its dimensions bound.
        text: String,
        /// The source of the expected results.
        oracle: Oracle,
    },
}

/// A message from the measuring process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The setup is done.
    Ready {
        /// How long computing the reference took, in seconds.
        reference_seconds: f64,
    },
    /// An action begins that may take time or fail.
    Begin(Stage),
    /// The result of a candidate.
    Outcome {
        /// Its position in the request.
        candidate: usize,
        /// Its time, or the reason for having none.
        outcome: Outcome,
    },
    /// The result of a comparison; none when it was ended early.
    Compared(Option<(Timing, Timing)>),
    /// The request is done.
    Done,
    /// No request can be carried out.
    Error(String),
}

/// The next action of the measuring process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Compile all candidates of the request.
    Compile,
    /// Run a candidate, by its position in the request.
    Run(usize),
}

/// The result of a candidate.
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
    /// It failed.
    Failed(Failure),
}

//! Why a candidate could not be measured.

use std::fmt;

use serde::{Deserialize, Serialize};
use tilewright_search::tuner::TrialOutcome;

/// The words under which failures are counted and recorded.
pub mod reason {
    /// The trace cannot be read or repeated.
    pub const REPLAY: &str = "replay";
    /// The scheduled program cannot be lowered.
    pub const LOWERING: &str = "lowering";
    /// The backend cannot compile the program.
    pub const COMPILE: &str = "compile";
    /// The compiled code refused its arguments, or reported an index out of bounds.
    pub const CALL: &str = "call";
    /// The results differ from the reference.
    pub const WRONG_RESULT: &str = "wrong_result";
    /// A panic, which is a bug of ours.
    pub const PANIC: &str = "panic";
    /// The process that ran it died.
    pub const CRASH: &str = "crash";
    /// It did not end in time.
    pub const HANG: &str = "hang";
    /// It needed more memory than a measurement may use.
    pub const MEMORY: &str = "memory";
}

/// Why a candidate could not be measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// One of the words in [`reason`].
    pub reason: String,
    /// A message for people.
    pub message: String,
}

impl Failure {
    /// A failure for one of the words in [`reason`].
    pub fn new(reason: &str, message: impl fmt::Display) -> Self {
        Failure { reason: reason.to_owned(), message: message.to_string() }
    }
}

impl From<Failure> for TrialOutcome {
    fn from(failure: Failure) -> Self {
        TrialOutcome::Failed { reason: failure.reason, message: failure.message }
    }
}

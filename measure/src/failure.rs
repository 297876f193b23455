//! Why a candidate could not be measured.

use std::fmt;

use serde::{Deserialize, Serialize};
use tilewright_search::tuner::TrialOutcome;

macro_rules! reasons {
    ($($name:ident = $word:literal, $meaning:literal;)*) => {
        /// The words under which failures are counted and recorded.
        pub mod reason {
            $(
                #[doc = concat!("In short: ", $meaning, ".")]
                pub const $name: &str = $word;
            )*

            /// Every word, and what it means, as the end of a sentence.
            pub const ALL: &[(&str, &str)] = &[$(($word, $meaning)),*];
        }
    };
}

reasons! {
    REPLAY = "replay", "the trace cannot be read or repeated";
    LOWERING = "lowering", "the scheduled program cannot be lowered";
    COMPILE = "compile", "the backend cannot compile the program";
    CALL = "call", "the compiled code refused its arguments, or reported an index out of bounds";
    WRONG_RESULT = "wrong_result", "the results differ from those of the definition";
    PANIC = "panic", "the compiler panicked, which is a bug of ours";
    CRASH = "crash", "the process that ran it died";
    HANG = "hang", "it did not come to an end in time";
    MEMORY = "memory", "it needed more memory than a measurement may use";
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

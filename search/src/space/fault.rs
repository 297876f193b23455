//! Faults of schedule rules.

use std::any::Any;
use std::fmt;
use std::time::Duration;

use tilewright_core::schedule::MAX_STEPS;

use crate::space::rule::RuleEntry;

/// A rule that misbehaved and was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleFault {
    /// The rule's name.
    pub rule: &'static str,
    /// Where it is written: a file and a line.
    pub place: String,
    /// The block that it was applied to.
    pub block: String,
    /// Its fault.
    pub misbehaviour: Misbehaviour,
}

/// The kind of a rule's fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misbehaviour {
    /// It panicked, with this message.
    Panicked(String),
    /// It did not end in time. Its thread was abandoned.
    Endless {
        /// The time.
        limit: Duration,
    },
    /// It applied more primitives than a schedule takes.
    TooManySteps,
    /// It made more variants than are allowed.
    Forks {
        /// The most variants that are allowed.
        most: usize,
    },
    /// It was not applied, because no thread could be started to supervise it; the system's message.
    Unwatched(String),
}

impl RuleFault {
    pub(crate) fn new(rule: &RuleEntry, block: &str, misbehaviour: Misbehaviour) -> Self {
        RuleFault { rule: rule.name, place: Self::place_of(rule), block: block.to_owned(), misbehaviour }
    }

    /// Where a rule is written.
    pub(crate) fn place_of(rule: &RuleEntry) -> String {
        format!("{}:{}", rule.file, rule.line)
    }
}

impl Misbehaviour {
    pub(crate) fn of_panic(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        Misbehaviour::Panicked(text.unwrap_or_else(|| "without a message".to_owned()))
    }
}

/// ``the rule `tile_twice` (src/rules.rs:12) panicked at the block `c`: no such loop``
impl fmt::Display for RuleFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RuleFault { rule, place, block, misbehaviour } = self;
        write!(f, "the rule `{rule}` ({place}) ")?;
        match misbehaviour {
            Misbehaviour::Panicked(message) => write!(f, "panicked at the block `{block}`: {message}"),
            Misbehaviour::Endless { limit } => {
                let seconds = limit.as_secs_f64();
                write!(f, "did not come to an end within {seconds} s at the block `{block}`")
            }
            Misbehaviour::TooManySteps => {
                write!(f, "applied more than {MAX_STEPS} primitives at the block `{block}`")
            }
            Misbehaviour::Forks { most } => {
                write!(f, "made more than {most} variants at the block `{block}`")
            }
            Misbehaviour::Unwatched(error) => {
                write!(f, "was not applied, because no thread could be started to run it in: {error}")
            }
        }
    }
}

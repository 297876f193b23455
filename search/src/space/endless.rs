//! Rules that did not end in time, remembered as long as the process lives.
//!
//! The thread of such a rule can only be abandoned. Each further attempt would wait again, and keep another core
//! busy.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::space::fault::{Misbehaviour, RuleFault};
use crate::space::rule::RuleEntry;

static KNOWN: Mutex<Vec<RuleFault>> = Mutex::new(Vec::new());

/// Remembers the fault of a rule that did not end in time.
pub(crate) fn remember(fault: &RuleFault) {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner).push(fault.clone());
}

/// The fault of a rule that once did not end within `time` or more.
pub(crate) fn fault_of(rule: &RuleEntry, time: Duration) -> Option<RuleFault> {
    let is_its_own = |fault: &&RuleFault| fault.rule == rule.name && fault.place == RuleFault::place_of(rule);
    let took_as_long = |fault: &&RuleFault| match fault.misbehaviour {
        Misbehaviour::Endless { limit } => limit >= time,
        _ => false,
    };
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.iter().filter(is_its_own).find(took_as_long).cloned()
}

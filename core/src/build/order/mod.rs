//! The order in which iterations must be executed: recurrences, iteration domains, races.

mod dependence;
pub(super) mod domain;
pub(super) mod recurrence;

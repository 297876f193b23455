//! Lowering: the shape of what it gives, and that it computes the same.

mod differential;
mod execute;
mod kernels;
mod random_schedule;
#[path = "../support/recurrences.rs"]
mod recurrences;
mod scopes;
mod structure;

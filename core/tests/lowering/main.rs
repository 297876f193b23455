//! Lowering: the shape of what it gives, and that it computes the same.

mod differential;
mod execute;
mod kernels;
mod random_schedule;
mod scopes;
mod structure;

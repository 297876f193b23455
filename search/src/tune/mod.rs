//! The loop of proposing, measuring and learning, for one task and for many.

pub mod forecast;
pub mod scheduler;
pub mod tuner;

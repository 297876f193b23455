//! The passes, one per file. [`pipelines`](super::pipelines) says which of them run, and in which order.

pub(in crate::lower) mod loops;
pub(in crate::lower) mod threads;
pub(in crate::lower) mod to_flat;
pub(in crate::lower) mod to_loops;

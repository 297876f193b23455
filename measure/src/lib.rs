#![forbid(unsafe_code)]
//! Measurements: how fast schedules of a program are, and whether their results are right.
//!
//! This crate knows devices by their trait, and proposes no schedule: it runs the given ones.
//!
//! | module | does |
//! |---|---|
//! | [`subject`] | a program at a shape, with random arguments and the results that are expected |
//! | [`batch`] | compiles, checks and times candidates |
//!
//! [`sampling`], [`anchor`]
//! how often each candidate runs; times relative to the first candidates
//!
//! | [`runner`] | measures in this process |
//! | [`isolation`] | measures in a process of its own, so that a crash costs one candidate |
//! | [`replay`] | repeats records on the programs beside them |
//! | [`count`], [`peak`], [`roofline`] | operations and bytes of a program; the speeds that a device reaches at most |
//! | [`scratch`] | a directory for the files of a run |

pub mod anchor;
pub mod batch;
pub mod count;
mod error;
pub mod failure;
pub mod isolation;
pub mod peak;
pub mod replay;
pub mod roofline;
pub mod runner;
pub mod sampling;
pub mod scratch;
pub mod subject;

pub use error::MeasureError;
pub use failure::{Failure, reason};

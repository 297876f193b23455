//! Execution of kernels.

mod access;
mod atomics;
mod barriers;
pub(crate) mod build;
mod collective;
mod copies;
mod frames;
pub(crate) mod grid;
mod groups;
pub(crate) mod lanes;
mod matrix;
mod mbarriers;
mod mma;
pub(crate) mod op;
mod random;
mod resolve;
mod run;
pub(crate) mod state;
mod wmma;

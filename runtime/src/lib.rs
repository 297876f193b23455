#![forbid(unsafe_code)]
//! Kernels at run time: from a definition and the dimensions of a call to compiled code, chosen once and run.
//!
//! This crate knows devices by their trait alone. Applications, graphs and tuners stand on it; it neither searches nor
//! measures.
//!
//! | module | holds |
//! |---|---|
//!
//! [`definition`]
//! definitions as data
//!
//! | [`kernel`](mod@kernel) | kernels: versions, buckets, the choice of a schedule, calls |
//! | [`background`] | better versions, made beside calls |
//! | [`choices`] | default schedules, kept between processes |
//! | [`code`] | scheduled programs lowered and compiled; results of constant tensors |
//! | [`graph`](mod@graph) | functions that call kernels, recorded as data |
//! | [`records`] | the tuning records that calls look up |
//! | [`devices`] | the devices of this process |
//! | [`settings`] | threads and diagnostics, also by environment variables |

pub mod background;
pub mod choices;
pub mod code;
pub mod definition;
pub mod devices;
mod error;
pub mod graph;
pub mod kernel;
pub mod records;
pub mod settings;

pub use devices::DeviceId;
pub use error::Error;

//! Measuring in a process of its own.
//!
//! The tuner starts its own program again as a measuring process, which computes the expected results once and then
//! compiles, checks and times candidates. A candidate that crashes, hangs or takes all memory ends that process and costs only itself.
//!
//! | module | does |
//! |---|---|
//! | [`worker`] | the measuring process |
//! | [`protocol`] | requests and replies: one JSON object a line |
//! | `process` | starts and watches a measuring process |
//! | `runner` | measures candidates in such processes |

mod process;
pub mod protocol;
mod runner;
pub mod worker;

pub use process::memory_limit;
pub use runner::{IsolatedRunner, Limits};
pub use worker::init;

//! Facts about programs, computed when asked and never stored.
//!
//! | module | answers |
//! |---|---|
//! | [`block`] | what a block reads and writes, and of which kind it is |
//! | [`constant`] | what depends on constant parameters alone |
//! | [`scope`] | where blocks stand: loops around them, producers, consumers |
//! | [`region`] | which part of a buffer is touched below a loop |
//! | [`zeros`] | which elements of an intermediate are zero |
//! | [`coverage`] | whether writes fill such a part |
//! | [`neutral`] | under which conditions a term changes a sum |
//! | [`share`] | for how many points of a domain conditions hold |
//! | [`terms`] | which terms of a reduction every schedule has to evaluate |
//! | [`pipeline`] | whether a loop can be executed as a software pipeline |

pub(crate) mod access;
pub mod block;
pub mod condition;
pub mod constant;
pub mod coverage;
pub(crate) mod initial;
pub(crate) mod loop_carried;
pub mod neutral;
pub mod pipeline;
pub mod region;
pub mod scope;
pub mod share;
pub mod terms;
pub mod zeros;

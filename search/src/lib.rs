#![forbid(unsafe_code)]
//! The search of Tilewright: rules span a space of schedules, and a tuner finds the best one in it.
//!
//! | module | holds |
//! |---|---|
//! | [`rule`] | what a schedule rule is; sets of rules and their order |
//! | [`rules`] | the built-in rules |
//! | [`space`] | from rules to design spaces |
//! | [`postproc`] | what makes a drawn schedule fit to be compiled, or refuses it |
//! | [`model`] | the learned cost model |

pub mod model;
pub mod postproc;
pub mod rule;
pub mod rules;
pub mod space;

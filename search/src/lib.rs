#![forbid(unsafe_code)]
//! The search of Tilewright: rules span a space of schedules, and a tuner finds the best one in it.
//!
//! | module | holds |
//! |---|---|
//! | [`rule`] | what a schedule rule is; sets of rules and their order |
//! | [`rules`] | the built-in rules |
//! | [`composition`], [`chain`] | rules, mutators and postprocessors together; how users exchange them |
//! | [`space`] | from rules to design spaces |
//! | [`postproc`] | what makes a drawn schedule fit to be compiled, or refuses it |
//! | [`mutate`] | small steps in a space |
//! | [`candidate`], [`features`] | a point of a space, and how the cost model sees it |
//! | [`model`] | the learned cost model |
//! | [`strategy`], [`evolution`] | which candidates to measure next |
//! | [`tuner`] | the loop of proposing, measuring and learning |
//! | [`scheduler`] | which of many tasks to tune next, under one budget |
//! | [`outlook`] | what more trials would likely bring |
//! | [`default_schedule`] | a respectable schedule without measurement |
//! | [`transfer`] | traces of one kernel for a variant of it |
//! | [`database`] | tuning records: written, read, found |

pub mod candidate;
pub mod chain;
pub mod composition;
pub mod database;
pub mod default_schedule;
mod endless;
pub mod evolution;
mod fault;
pub mod features;
pub mod fit;
pub mod model;
pub mod mutate;
pub mod outlook;
pub mod postproc;
pub mod rule;
pub mod rules;
pub mod scheduler;
mod seed;
pub mod space;
pub mod strategy;
pub mod transfer;
pub mod tuner;

pub use default_schedule::schedule_by_default;

// The built-in rules are written with the attribute that users' rules are written with, and its
// expansion names `::tilewright::__private`.
extern crate self as tilewright;

#[doc(hidden)]
pub mod __private {
    pub use crate::rule::RuleEntry;
    pub use core::option::Option::{None, Some};
    pub use core::{file, line};
    pub use inventory;
}

#![forbid(unsafe_code)]
//! The search of Tilewright: rules make design spaces of a program, and a tuner finds the best schedule in them.
//!
//! | module | holds |
//! |---|---|
//! | [`space`] | design spaces: [rules](rule), [mutators](mutate), [postprocessors](postproc), and [all of them as one value](spec) |
//! | [`cpu`] | the rules, postprocessors, features and draft model of a CPU |
//! | [`gpu`] | the rules, postprocessors, static costs and draft model of a GPU |
//! | [`explore`] | [candidates](candidate), and the [strategies](strategy) that say which of them to measure next; schedules without a search: the [default](default_schedule), one [fitted](fit) to another shape, one [transferred](transfer) from another kernel |
//! | [`model`] | the learned cost model |
//! | [`tune`] | the [loop](tuner) of proposing, measuring and learning; the [scheduler] of many tasks under one budget; the [forecast] of further trials |
//! | [`records`] | tuning records: written, read, found |

mod built_in;
pub mod cpu;
pub mod explore;
pub mod gpu;
pub mod model;
pub mod records;
pub mod space;
pub mod tune;

pub use explore::default_schedule::{schedule_by_default, schedule_near, schedule_quickly};
#[doc(no_inline)]
pub use explore::{candidate, default_schedule, fit, strategy, transfer};
#[doc(no_inline)]
pub use space::{chain, mutate, postproc, rule, spec};
#[doc(no_inline)]
pub use tune::{forecast, scheduler, tuner};

// The built-in rules are written with the attribute that users' rules are written with, and its
// expansion names `::tilewright::__private`.
extern crate self as tilewright;

#[doc(hidden)]
pub mod __private {
    pub use crate::space::rule::RuleEntry;
    pub use core::option::Option::{None, Some};
    pub use core::{file, line, module_path};
    pub use inventory;
}

//! Operators that take one number of each window, or spread one over it.

mod global;
mod unpool;
mod windows;

use crate::operator::Operator;

/// The rows of this folder.
pub(super) const TABLES: &[&[Operator]] = &[windows::OPERATORS, global::OPERATORS, unpool::OPERATORS];

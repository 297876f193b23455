//! Operators that take one number of each window, or spread one over it.

mod global;
mod unpool;
mod windows;

use crate::operator::Operator;

/// The rows of this folder.
pub(super) const TABLES: &[&[Operator]] = &[windows::OPERATORS, GLOBAL, unpool::OPERATORS];

/// The rows that take one number of all places of a plane.
pub(super) const GLOBAL: &[Operator] = global::OPERATORS;

//! Operators that make one element of many.

mod reduction;
mod running;
mod softmax;

use crate::operator::Operator;

/// The rows of this folder.
pub(super) const TABLES: &[&[Operator]] = &[reduction::OPERATORS, running::OPERATORS, softmax::OPERATORS];

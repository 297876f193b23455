//! Operators that make one element of many.

mod reduction;
mod running;
mod softmax;

use crate::operator::Operator;

/// The rows of this folder.
pub(super) const TABLES: &[&[Operator]] =
    &[reduction::REDUCTIONS, reduction::PLACES, running::OPERATORS, softmax::OPERATORS];

/// Reductions over dimensions that read each element once.
pub(super) const REDUCTIONS: &[Operator] = reduction::REDUCTIONS;

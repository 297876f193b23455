//! Operators that change shapes, or compute with them.

mod arrange;
mod join;
mod query;
mod reshape;

use crate::operator::Operator;

/// The rows of this folder.
pub(super) const TABLES: &[&[Operator]] =
    &[reshape::OPERATORS, arrange::OPERATORS, join::OPERATORS, query::OPERATORS];

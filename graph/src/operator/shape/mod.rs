//! Operators that change shapes, or compute with them.

mod arrange;
mod join;
mod query;
mod reshape;

use crate::operator::Operator;

pub(crate) use arrange::extents;
pub(crate) use join::{concat, split_lengths};

/// The rows of this folder.
pub(super) const TABLES: &[&[Operator]] =
    &[reshape::OPERATORS, arrange::OPERATORS, join::OPERATORS, query::OPERATORS];

//! Sequences and optional values.

mod optional;
mod sequence;

use crate::operator::Operator;

/// The rows of this folder.
pub(super) const TABLES: &[&[Operator]] = &[optional::OPERATORS, sequence::OPERATORS];

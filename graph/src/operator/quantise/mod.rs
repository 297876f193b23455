//! Operators on numbers that integers stand for: `(integer - zero point) · scale`.

mod convert;
mod products;

use crate::operator::Operator;

/// The rows of this folder.
pub(super) const TABLES: &[&[Operator]] = &[convert::OPERATORS, products::OPERATORS];

//! Operators on numbers that integers stand for: `(integer - zero point) · scale`.

mod convert;
mod products;

pub(crate) use convert::Rounding;

use crate::operator::Operator;

/// The rows of this folder.
pub(super) const TABLES: &[&[Operator]] = &[POINTWISE, convert::OPERATORS, products::OPERATORS];

/// The rows that compute each element from one element of each input.
pub(super) const POINTWISE: &[Operator] = convert::POINTWISE;

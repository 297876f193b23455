//! Operators on numbers that integers stand for: `(integer - zero point) · scale`.

mod blocks;
mod convert;
mod lookup;
mod products;

pub(crate) use blocks::Panels;
pub(crate) use convert::Rounding;

use crate::operator::Operator;

/// The rows of this folder.
pub(super) const TABLES: &[&[Operator]] =
    &[POINTWISE, blocks::OPERATORS, convert::OPERATORS, products::OPERATORS];

/// The rows that compute each element from one element of each input.
pub(super) const POINTWISE: &[Operator] = convert::POINTWISE;

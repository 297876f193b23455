//! Operators that compute each element of the result from one element of each input.

mod activation;
mod binary;
mod conversion;
mod logic;
mod unary;

pub(crate) use activation::sigmoid;

use crate::operator::Operator;

/// The rows of this folder.
pub(super) const TABLES: &[&[Operator]] =
    &[unary::OPERATORS, activation::OPERATORS, binary::OPERATORS, logic::OPERATORS, conversion::OPERATORS];

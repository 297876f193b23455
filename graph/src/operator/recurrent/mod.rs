//! Recurrent layers.

mod activation;
mod cells;
mod layer;

use crate::operator::Operator;

/// The rows of this folder.
pub(super) const TABLES: &[&[Operator]] = &[cells::OPERATORS];

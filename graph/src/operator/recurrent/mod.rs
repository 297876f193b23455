//! Recurrent layers.

mod activation;
mod cells;
mod layer;

use crate::operator::Operator;
pub(crate) use activation::{Activation, activations};

/// The rows of this folder.
pub(super) const TABLES: &[&[Operator]] = &[cells::OPERATORS];

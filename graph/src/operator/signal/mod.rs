//! Signals: Fourier transforms, windows, filters.

mod fourier;
mod generators;

use crate::operator::Operator;

/// The rows of this folder.
pub(super) const TABLES: &[&[Operator]] = &[fourier::OPERATORS, generators::OPERATORS];

//! Signals: Fourier transforms, windows, filters, noise.

mod fourier;
mod generators;
mod random;

use crate::operator::Operator;

/// The rows of this folder.
pub(super) const TABLES: &[&[Operator]] = &[fourier::OPERATORS, generators::OPERATORS, random::OPERATORS];

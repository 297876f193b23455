//! Operators that read tensors between their places.

mod grid;
mod kernel;
mod regions;
mod resize;

use crate::operator::Operator;

pub(in crate::operator) use grid::bilinear;
pub(crate) use resize::{Resized, Source, resized};

/// The rows of this folder.
pub(super) const TABLES: &[&[Operator]] = &[resize::OPERATORS, grid::OPERATORS, regions::OPERATORS];

//! Normalisations: elements relative to mean and variance of others.

mod batch;
mod layer;
mod local;

use crate::operator::Operator;

pub(crate) use batch::EPSILON;

/// The rows of this folder.
pub(super) const TABLES: &[&[Operator]] = &[batch::OPERATORS, layer::OPERATORS, local::OPERATORS];

/// The mean of numbers, and the mean of the squares of their distances to it.
fn moments(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let count = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / count;
    let variance = values.map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
    (mean, variance)
}

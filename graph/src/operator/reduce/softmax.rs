//! Softmax and its kin: each element against the others along one dimension.

use crate::deduce;
use crate::ir::AttributeKind;
use crate::legalise::{normalisation, reduction};
use crate::operator::attribute::IntOr;
use crate::operator::evaluate::{axis, one, refuse};
use crate::operator::lanes::map_lanes;
use crate::operator::{Arguments, Fault, Operator, Value};
use crate::tensor::{Number, with_float};

const AXIS: &[(&str, AttributeKind)] = &[("axis", IntOr(-1))];

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("softmax", "Softmax", |a| along(a, softmax))
        .legalise(|e, o| reduction::softmax(e, o, false))
        .deduce(deduce::same)
        .attributes(AXIS),
    Operator::new("log_softmax", "LogSoftmax", |a| along(a, log_softmax))
        .legalise(|e, o| reduction::softmax(e, o, true))
        .deduce(deduce::same)
        .attributes(AXIS),
    Operator::new("hardmax", "Hardmax", |a| along(a, hardmax)).deduce(deduce::same).attributes(AXIS),
    Operator::new("lp_normalization", "LpNormalization", |a| {
        let order = a.int_or_default("p");
        along(a, |lane| lp_normalization(lane, order))
    })
    .legalise(normalisation::by_length)
    .deduce(deduce::same)
    .attributes(&[("axis", IntOr(-1)), ("p", IntOr(2))]),
];

fn along(arguments: &Arguments<'_>, function: impl Fn(&[f64]) -> Vec<f64>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let dimension = axis(arguments.int_or_default("axis"), x.rank())?;
    with_float!(x.element(), T => one(map_lanes::<T, T>(x, dimension, x.shape()[dimension], |lane| {
        let wide: Vec<f64> = lane.iter().map(|x| x.widen()).collect();
        Ok(function(&wide).into_iter().map(T::narrow).collect())
    })?), else refuse!("expected floating-point elements, found {}", x.element()))
}

/// The exponentials of the distances to the largest element, and their sum.
fn exponentials(lane: &[f64]) -> (f64, Vec<f64>, f64) {
    let largest = lane.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let exponentials: Vec<f64> = lane.iter().map(|x| (x - largest).exp()).collect();
    let sum = exponentials.iter().sum();
    (largest, exponentials, sum)
}

fn softmax(lane: &[f64]) -> Vec<f64> {
    let (_, exponentials, sum) = exponentials(lane);
    exponentials.iter().map(|x| x / sum).collect()
}

fn log_softmax(lane: &[f64]) -> Vec<f64> {
    let (largest, _, sum) = exponentials(lane);
    lane.iter().map(|x| x - largest - sum.ln()).collect()
}

/// 1 at the first of the largest elements, 0 elsewhere.
fn hardmax(lane: &[f64]) -> Vec<f64> {
    let best = (1..lane.len()).fold(0, |best, place| if lane[place] > lane[best] { place } else { best });
    (0..lane.len()).map(|place| if place == best { 1.0 } else { 0.0 }).collect()
}

/// Division by the sum of magnitudes or by the Euclidean length; zeros stay zeros.
fn lp_normalization(lane: &[f64], order: i64) -> Vec<f64> {
    let norm = if order == 1 {
        lane.iter().map(|x| x.abs()).sum::<f64>()
    } else {
        lane.iter().map(|x| x * x).sum::<f64>().sqrt()
    };
    lane.iter().map(|x| if norm == 0.0 { 0.0 } else { x / norm }).collect()
}

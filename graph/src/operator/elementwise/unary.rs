//! Functions of one number.

use tilewright_core::expr::UnaryOp;

use crate::deduce;
use crate::legalise::{pointwise, scalar};
use crate::operator::evaluate::{one, refuse};
use crate::operator::{Arguments, Fault, Operator, Value};
use crate::tensor::{HostTensor, Number, with_float, with_number};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("abs", "Abs", |a| number(a, f64::abs, i64::wrapping_abs))
        .legalise(|e, o| pointwise::any_number(e, o, |x, _| x.unary(UnaryOp::Abs)))
        .deduce(deduce::same),
    Operator::new("neg", "Neg", |a| number(a, |x| -x, i64::wrapping_neg))
        .legalise(|e, o| pointwise::any_number(e, o, |x, _| x.unary(UnaryOp::Neg)))
        .deduce(deduce::same),
    Operator::new("sign", "Sign", |a| number(a, sign, i64::signum))
        .legalise(|e, o| pointwise::any_number(e, o, scalar::sign))
        .deduce(deduce::same),
    Operator::new("relu", "Relu", |a| number(a, |x| if x < 0.0 { 0.0 } else { x }, |x| x.max(0)))
        .legalise(|e, o| pointwise::any_number(e, o, scalar::relu))
        .deduce(deduce::same),
    Operator::new("bitwise_not", "BitwiseNot", |a| number(a, |x| x, |x| !x))
        .legalise(crate::legalise::integer::complement)
        .deduce(deduce::same),
    Operator::new("ceil", "Ceil", |a| float(a, f64::ceil))
        .legalise(|e, o| pointwise::unary(e, o, UnaryOp::Ceil))
        .deduce(deduce::same),
    Operator::new("floor", "Floor", |a| float(a, f64::floor))
        .legalise(|e, o| pointwise::unary(e, o, UnaryOp::Floor))
        .deduce(deduce::same),
    Operator::new("round", "Round", |a| float(a, f64::round_ties_even))
        .legalise(|e, o| pointwise::unary(e, o, UnaryOp::RoundTiesEven))
        .deduce(deduce::same),
    Operator::new("exp", "Exp", |a| float(a, f64::exp))
        .legalise(|e, o| pointwise::unary(e, o, UnaryOp::Exp))
        .deduce(deduce::same),
    Operator::new("log", "Log", |a| float(a, f64::ln))
        .legalise(|e, o| pointwise::unary(e, o, UnaryOp::Ln))
        .deduce(deduce::same),
    Operator::new("sqrt", "Sqrt", |a| float(a, f64::sqrt))
        .legalise(|e, o| pointwise::unary(e, o, UnaryOp::Sqrt))
        .deduce(deduce::same),
    Operator::new("reciprocal", "Reciprocal", |a| float(a, f64::recip))
        .legalise(|e, o| pointwise::float(e, o, scalar::reciprocal))
        .deduce(deduce::same),
    Operator::new("sin", "Sin", |a| float(a, f64::sin))
        .legalise(|e, o| pointwise::unary(e, o, UnaryOp::Sin))
        .deduce(deduce::same),
    Operator::new("cos", "Cos", |a| float(a, f64::cos))
        .legalise(|e, o| pointwise::unary(e, o, UnaryOp::Cos))
        .deduce(deduce::same),
    Operator::new("tan", "Tan", |a| float(a, f64::tan))
        .legalise(|e, o| pointwise::unary(e, o, UnaryOp::Tan))
        .deduce(deduce::same),
    Operator::new("asin", "Asin", |a| float(a, f64::asin))
        .legalise(|e, o| pointwise::unary(e, o, UnaryOp::Asin))
        .deduce(deduce::same),
    Operator::new("acos", "Acos", |a| float(a, f64::acos))
        .legalise(|e, o| pointwise::unary(e, o, UnaryOp::Acos))
        .deduce(deduce::same),
    Operator::new("atan", "Atan", |a| float(a, f64::atan))
        .legalise(|e, o| pointwise::unary(e, o, UnaryOp::Atan))
        .deduce(deduce::same),
    Operator::new("sinh", "Sinh", |a| float(a, f64::sinh))
        .legalise(|e, o| pointwise::unary(e, o, UnaryOp::Sinh))
        .deduce(deduce::same),
    Operator::new("cosh", "Cosh", |a| float(a, f64::cosh))
        .legalise(|e, o| pointwise::unary(e, o, UnaryOp::Cosh))
        .deduce(deduce::same),
    Operator::new("tanh", "Tanh", |a| float(a, f64::tanh))
        .legalise(|e, o| pointwise::unary(e, o, UnaryOp::Tanh))
        .deduce(deduce::same),
    Operator::new("asinh", "Asinh", |a| float(a, f64::asinh))
        .legalise(|e, o| pointwise::float(e, o, scalar::asinh))
        .deduce(deduce::same),
    Operator::new("acosh", "Acosh", |a| float(a, f64::acosh))
        .legalise(|e, o| pointwise::float(e, o, scalar::acosh))
        .deduce(deduce::same),
    Operator::new("atanh", "Atanh", |a| float(a, f64::atanh))
        .legalise(|e, o| pointwise::float(e, o, scalar::atanh))
        .deduce(deduce::same),
    Operator::new("erf", "Erf", |a| float(a, libm::erf))
        .legalise(|e, o| pointwise::unary(e, o, UnaryOp::Erf))
        .deduce(deduce::same),
];

fn sign(x: f64) -> f64 {
    if x == 0.0 || x.is_nan() { x } else { x.signum() }
}

/// Applies a function to each element of a floating-point tensor.
pub(super) fn float(arguments: &Arguments<'_>, function: impl Fn(f64) -> f64) -> Result<Vec<Value>, Fault> {
    float_by(arguments, &function)
}

/// As [`float`], compiled once for all functions.
fn float_by(arguments: &Arguments<'_>, function: &dyn Fn(f64) -> f64) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    with_float!(x.element(), T => {
        let elements = x.expect::<T>()?.iter().map(|&x| T::narrow(function(x.widen()))).collect();
        one(HostTensor::new(x.shape(), elements)?)
    }, else refuse!("expected floating-point elements, found {}", x.element()))
}

/// Applies a function to each element, in one form for floats and in another for integers.
fn number(
    arguments: &Arguments<'_>,
    floats: fn(f64) -> f64,
    integers: fn(i64) -> i64,
) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    if x.element().is_float() {
        return float(arguments, floats);
    }
    with_number!(x.element(), T => {
        // Values of `u64` beyond 2⁶³ are negative in `i64`; the functions of this file leave non-negative values alone.
        let beyond = |x: T| x.to_integer() < 0 && T::lowest() == T::default();
        let apply = |&x: &T| if beyond(x) { x } else { T::from_integer(integers(x.to_integer())) };
        one(HostTensor::new(x.shape(), x.expect::<T>()?.iter().map(apply).collect())?)
    }, else refuse!("expected numbers, found {}", x.element()))
}

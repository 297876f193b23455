//! Comparisons and truth values.

use tilewright_core::expr::BinaryOp;

use crate::deduce;
use crate::legalise::pointwise;
use crate::operator::attribute::IntOr;
use crate::operator::elementwise::binary::broadcast;
use crate::operator::evaluate::{one, refuse};
use crate::operator::{Arguments, Fault, Operator, Value};
use crate::tensor::{Element, ElementType, HostTensor, Number, with_element, with_float};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("equal", "Equal", |a| compare(a, Comparison::Equal))
        .legalise(|e, o| pointwise::compare(e, o, BinaryOp::Eq))
        .deduce(deduce::compare)
        .inputs(2, 2),
    Operator::new("less", "Less", |a| compare(a, Comparison::Less))
        .legalise(|e, o| pointwise::compare(e, o, BinaryOp::Lt))
        .deduce(deduce::compare)
        .inputs(2, 2),
    Operator::new("less_or_equal", "LessOrEqual", |a| compare(a, Comparison::LessOrEqual))
        .legalise(|e, o| pointwise::compare(e, o, BinaryOp::Le))
        .deduce(deduce::compare)
        .inputs(2, 2),
    Operator::new("greater", "Greater", |a| compare(a, Comparison::Greater))
        .legalise(|e, o| pointwise::compare(e, o, BinaryOp::Gt))
        .deduce(deduce::compare)
        .inputs(2, 2),
    Operator::new("greater_or_equal", "GreaterOrEqual", |a| compare(a, Comparison::GreaterOrEqual))
        .legalise(|e, o| pointwise::compare(e, o, BinaryOp::Ge))
        .deduce(deduce::compare)
        .inputs(2, 2),
    Operator::new("and", "And", |a| truth(a, |x, y| x && y))
        .legalise(|e, o| pointwise::truth(e, o, BinaryOp::And))
        .deduce(deduce::compare)
        .inputs(2, 2),
    Operator::new("or", "Or", |a| truth(a, |x, y| x || y))
        .legalise(|e, o| pointwise::truth(e, o, BinaryOp::Or))
        .deduce(deduce::compare)
        .inputs(2, 2),
    Operator::new("xor", "Xor", |a| truth(a, |x, y| x != y))
        .legalise(|e, o| pointwise::truth(e, o, BinaryOp::Xor))
        .deduce(deduce::compare)
        .inputs(2, 2),
    Operator::new("not", "Not", not).legalise(pointwise::not).deduce(deduce::compare),
    Operator::new("is_nan", "IsNaN", |a| classify(a, f64::is_nan))
        .legalise(pointwise::is_nan)
        .deduce(deduce::compare),
    Operator::new("is_inf", "IsInf", |a| {
        let (negative, positive) = (a.flag("detect_negative"), a.flag("detect_positive"));
        classify(a, |x| x.is_infinite() && if x < 0.0 { negative } else { positive })
    })
    .legalise(crate::legalise::integer::is_infinite)
    .deduce(deduce::compare)
    .attributes(&[("detect_negative", IntOr(1)), ("detect_positive", IntOr(1))]),
];

#[derive(Clone, Copy)]
enum Comparison {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    fn holds<T: Element>(self, x: &T, y: &T) -> bool {
        match self {
            Comparison::Equal => x == y,
            Comparison::Less => x < y,
            Comparison::LessOrEqual => x <= y,
            Comparison::Greater => x > y,
            Comparison::GreaterOrEqual => x >= y,
        }
    }
}

fn compare(arguments: &Arguments<'_>, comparison: Comparison) -> Result<Vec<Value>, Fault> {
    let (x, y) = (arguments.tensor(0)?, arguments.tensor(1)?);
    let ordered = !matches!(x.element(), ElementType::Bool | ElementType::String);
    if !ordered && !matches!(comparison, Comparison::Equal) {
        refuse!("elements of type {} have no order", x.element());
    }
    with_element!(x.element(), T => one(broadcast::<T, T, bool>(x, y, |x, y| Ok(comparison.holds(x, y)))?))
}

fn truth(arguments: &Arguments<'_>, function: fn(bool, bool) -> bool) -> Result<Vec<Value>, Fault> {
    one(broadcast::<bool, bool, bool>(arguments.tensor(0)?, arguments.tensor(1)?, |&x, &y| {
        Ok(function(x, y))
    })?)
}

fn not(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.slice::<bool>(0)?;
    one(HostTensor::new(arguments.tensor(0)?.shape(), x.iter().map(|x| !x).collect())?)
}

fn classify(arguments: &Arguments<'_>, function: impl Fn(f64) -> bool) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    with_float!(x.element(), T => {
        one(HostTensor::new(x.shape(), x.expect::<T>()?.iter().map(|x| function(x.to_f64())).collect())?)
    }, else refuse!("expected floating-point elements, found {}", x.element()))
}

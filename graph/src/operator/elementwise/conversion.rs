//! Conversion between element types, and values that pass unchanged.

use crate::deduce;
use crate::legalise::pointwise;
use crate::operator::attribute::{Element, FloatOr, IntOr, TextOr};
use crate::operator::evaluate::{one, refuse};
use crate::operator::{Arguments, Fault, Operator, Value};
use crate::tensor::{ElementType, HostTensor};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("cast", "Cast", cast).legalise(pointwise::convert).deduce(deduce::cast).attributes(&[
        ("to", Element),
        ("saturate", IntOr(1)),
        ("round_mode", TextOr("up")),
    ]),
    Operator::new("cast_like", "CastLike", cast_like)
        .deduce(deduce::cast_like)
        .inputs(2, 2)
        .attributes(&[("saturate", IntOr(1))]),
    Operator::new("bit_cast", "BitCast", bit_cast).deduce(deduce::cast).attributes(&[("to", Element)]),
    Operator::new("identity", "Identity", identity).legalise(pointwise::identity).deduce(deduce::same),
    Operator::new("dropout", "Dropout", dropout)
        .deduce(deduce::same)
        .inputs(1, 3)
        .outputs(1, 2)
        .attributes(&[("ratio", FloatOr(0.5)), ("seed", IntOr(0))]),
];

fn cast(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let Some(to) = arguments.element("to") else { refuse!("attribute to is missing") };
    let round = arguments.text("round_mode");
    if to == ElementType::F8E8M0 && round != "up" {
        refuse!("numbers become powers of two by rounding up, and not by rounding `{round}`");
    }
    one(arguments.tensor(0)?.cast_with(to, arguments.int_or_default("saturate") != 0)?)
}

fn cast_like(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let saturate = arguments.int_or_default("saturate") != 0;
    one(arguments.tensor(0)?.cast_with(arguments.tensor(1)?.element(), saturate)?)
}

/// The same bits as elements of another type.
fn bit_cast(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let (x, to) = (arguments.tensor(0)?, arguments.element("to"));
    let Some(to) = to.filter(|&to| to != ElementType::Bool) else {
        refuse!("attribute to must name a type of numbers")
    };
    let (Some(bytes), Some(dtype)) = (x.bytes(), to.dtype()) else {
        refuse!("elements of type {} have no bytes of their own that could be {to}", x.element())
    };
    if bytes.len() != x.len() * dtype.bytes() {
        refuse!("elements of type {} and of type {to} have different sizes", x.element());
    }
    one(HostTensor::from_bytes(to, x.shape(), bytes)?)
}

fn identity(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    match arguments.value(0) {
        Some(value) => Ok(vec![value.clone()]),
        None => refuse!("input 0 is missing"),
    }
}

/// Inference only: nothing is dropped, so that the mask is true everywhere.
fn dropout(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let training = match arguments.optional(2)? {
        None => false,
        Some(training) => training.expect::<bool>()?.first() == Some(&true),
    };
    let ratio = arguments.optional_numbers(1)?.and_then(|ratio| ratio.first().copied()).unwrap_or(0.5);
    if training && ratio != 0.0 {
        refuse!("dropping elements is a part of training, which is not supported");
    }
    let x = arguments.tensor(0)?;
    Ok(vec![x.clone().into(), HostTensor::full(x.shape(), true)?.into()])
}

//! Sums and products of all elements up to each one.

use tilewright_core::build::UpdateOp;

use crate::deduce;
use crate::ir::AttributeKind;
use crate::legalise::running;
use crate::operator::attribute::IntOr;
use crate::operator::evaluate::{axis, one, refuse};
use crate::operator::lanes::map_lanes;
use crate::operator::{Arguments, Fault, Operator, Value};
use crate::tensor::{Number, Wide, with_number};

const ATTRIBUTES: &[(&str, AttributeKind)] = &[("exclusive", IntOr(0)), ("reverse", IntOr(0))];

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("cumulative_sum", "CumSum", |a| running(a, false))
        .legalise(|emitter, operands| running::running(emitter, operands, UpdateOp::Add))
        .deduce(deduce::same)
        .inputs(2, 2)
        .attributes(ATTRIBUTES),
    Operator::new("cumulative_product", "CumProd", |a| running(a, true))
        .legalise(|emitter, operands| running::running(emitter, operands, UpdateOp::Mul))
        .deduce(deduce::same)
        .inputs(2, 2)
        .attributes(ATTRIBUTES),
];

fn running(arguments: &Arguments<'_>, product: bool) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let Some(number) = arguments.optional_integer(1)? else { refuse!("input 1, the axis, is missing") };
    let dimension = axis(number, x.rank())?;
    let length = x.shape()[dimension];
    let (exclusive, reverse) = (arguments.flag("exclusive"), arguments.flag("reverse"));
    with_number!(x.element(), T => one(map_lanes::<T, T>(x, dimension, length, |lane| {
        let mut results = vec![T::default(); length];
        let mut so_far = if product { <T as Number>::Wide::unit() } else { <T as Number>::Wide::default() };
        for step in 0..length {
            let place = if reverse { length - 1 - step } else { step };
            let value = lane[place].widen();
            let next = if product { so_far.times(value) } else { so_far.plus(value) };
            results[place] = T::narrow(if exclusive { so_far } else { next });
            so_far = next;
        }
        Ok(results)
    })?), else refuse!("expected numbers, found {}", x.element()))
}

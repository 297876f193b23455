//! Layer and batch normalisation.

use tilewright_core::build::{UpdateOp, Value};
use tilewright_core::expr::{BinaryOp, UnaryOp};

use crate::legalise::emitter::{Emitter, Tensor, here};
use crate::legalise::operands::Operands;
use crate::legalise::pointwise::{broadcast, broadcast_extents, broadcast_load};
use crate::legalise::reduction::{Lane, product, split};
use crate::legalise::scalar::{add, computing, divide, multiply, number, subtract};
use crate::legalise::{Unsupported, unsupported};
use crate::operator::axis;
use crate::symbolic::SymInt;

type Emitted = Result<Vec<Tensor>, Unsupported>;

/// The innermost dimensions from an axis on, relative to their mean and deviation.
pub(crate) fn layer(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    let first = axis(operands.attributes().int_or_default("axis"), x.rank())?;
    let (scale, shift) = (operands.optional(emitter, 1)?, operands.optional(emitter, 2)?);
    Ok(vec![normalise(emitter, &x, first, [scale, shift], operands.float("epsilon"), true)?])
}

/// The innermost dimensions from an axis on, relative to the root of the mean of their squares.
pub(crate) fn root_mean_square(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    let first = axis(operands.attributes().int_or_default("axis"), x.rank())?;
    let scale = operands.optional(emitter, 1)?;
    Ok(vec![normalise(emitter, &x, first, [scale, None], operands.float("epsilon"), false)?])
}

fn normalise(
    emitter: &mut Emitter,
    x: &Tensor,
    first: usize,
    [scale, shift]: [Option<Tensor>; 2],
    epsilon: f64,
    centred: bool,
) -> Result<Tensor, Unsupported> {
    if !x.dtype.is_float() {
        unsupported!("elements of type {} are no floats", x.element);
    }
    for parameter in [&scale, &shift].into_iter().flatten() {
        if broadcast_extents(&[&x.extents, &parameter.extents])? != x.extents {
            unsupported!("a parameter is larger than the tensor");
        }
    }
    let reduced: Vec<bool> = (0..x.rank()).map(|dimension| dimension >= first).collect();
    let (outer, inner) = split(&x.extents, &reduced);
    let (wide, bounds) = (computing(x.dtype), emitter.bounds(&inner)?);
    let count = emitter.value(&product(&inner))?.cast(wide);
    let result = emitter.local(x.element, &x.extents, None)?;
    emitter.nest(&outer, &mut |builder, outer| {
        let lane = Lane { x, reduced: &reduced, outer, bounds: &bounds, wide };
        let mean = if centred {
            let sum = builder.accumulator("sum", number(wide, 0.0), here!());
            lane.each(builder, &mut |builder, _, value| builder.update(sum, UpdateOp::Add, value, here!()));
            builder.bind("mean", divide(&builder.read(sum), &count), here!())
        } else {
            number(wide, 0.0)
        };
        let centre = |value: &Value| if centred { subtract(value, &mean) } else { value.clone() };
        let squares = builder.accumulator("squares", number(wide, 0.0), here!());
        lane.each(builder, &mut |builder, _, value| {
            let distance = centre(&value);
            builder.update(squares, UpdateOp::Add, multiply(&distance, &distance), here!());
        });
        let variance = divide(&builder.read(squares), &count);
        let inverse = add(&variance, &number(wide, epsilon)).unary(UnaryOp::Sqrt);
        let inverse = builder.bind("inverse", divide(&number(wide, 1.0), &inverse), here!());
        lane.each(builder, &mut |builder, indices, value| {
            let mut value = multiply(&centre(&value), &inverse);
            if let Some(scale) = &scale {
                value = multiply(&value, &broadcast_load(builder, scale, indices).cast(wide));
            }
            if let Some(shift) = &shift {
                value = add(&value, &broadcast_load(builder, shift, indices).cast(wide));
            }
            result.store(builder, indices, UpdateOp::Set, value.cast(x.dtype), here!());
        });
    })?;
    Ok(result)
}

/// Elements along a dimension divided by the sum of their magnitudes or by their Euclidean length; zeros stay zeros.
pub(crate) fn by_length(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    if !x.dtype.is_float() {
        unsupported!("elements of type {} are no floats", x.element);
    }
    let along = operands.axis("axis", x.rank())?;
    let magnitudes = operands.attributes().int_or_default("p") == 1;
    let reduced: Vec<bool> = (0..x.rank()).map(|dimension| dimension == along).collect();
    let (outer, inner) = split(&x.extents, &reduced);
    let (wide, bounds) = (computing(x.dtype), emitter.bounds(&inner)?);
    let result = emitter.local(x.element, &x.extents, None)?;
    emitter.nest(&outer, &mut |builder, outer| {
        let lane = Lane { x: &x, reduced: &reduced, outer, bounds: &bounds, wide };
        let total = builder.accumulator("total", number(wide, 0.0), here!());
        lane.each(builder, &mut |builder, _, value| {
            let term = if magnitudes { value.unary(UnaryOp::Abs) } else { multiply(&value, &value) };
            builder.update(total, UpdateOp::Add, term, here!());
        });
        let total = builder.read(total);
        let norm = if magnitudes { total } else { total.unary(UnaryOp::Sqrt) };
        let norm = builder.bind("norm", norm, here!());
        let is_zero = norm.binary(BinaryOp::Eq, number(wide, 0.0));
        lane.each(builder, &mut |builder, indices, value| {
            let value = is_zero.select(number(wide, 0.0), divide(&value, &norm));
            result.store(builder, indices, UpdateOp::Set, value.cast(x.dtype), here!());
        });
    })?;
    Ok(vec![result])
}

/// Normalisation with given moments for each channel.
pub(crate) fn batch(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    if operands.flag("training_mode") || x.rank() < 2 || !x.dtype.is_float() {
        unsupported!("only inference on floats with channels has a kernel form");
    }
    let epsilon = operands.float("epsilon");
    let mut inputs = vec![x.clone()];
    for place in 1..5 {
        let parameter = operands.tensor(emitter, place)?;
        inputs.push(per_channel(emitter, parameter, x.rank())?);
    }
    let wide = computing(x.dtype);
    let normal = |values: &[Value]| {
        let values: Vec<Value> = values.iter().map(|value| value.cast(wide)).collect();
        let [x, scale, shift, mean, variance] = &values[..] else { unreachable!("there are five inputs") };
        let deviation = add(variance, &number(wide, epsilon)).unary(UnaryOp::Sqrt);
        let factor = divide(scale, &deviation);
        add(&multiply(&subtract(x, mean), &factor), shift)
    };
    let dtype = x.dtype;
    Ok(vec![broadcast(emitter, &inputs, x.element, &|values| normal(values).cast(dtype))?])
}

/// A vector with one element for each channel, as a tensor that broadcasts to `[batch, channels, …]`.
pub(super) fn per_channel(emitter: &mut Emitter, x: Tensor, rank: usize) -> Result<Tensor, Unsupported> {
    let [channels] = &x.extents[..] else { unsupported!("expected one element for each channel") };
    let mut extents = vec![channels.clone()];
    extents.extend(vec![SymInt::from(1); rank - 2]);
    if rank == 2 {
        return Ok(x);
    }
    emitter.compute(x.element, &extents, &mut |builder, indices| x.at(builder, &indices[..1]))
}

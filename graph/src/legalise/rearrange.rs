//! The same elements in another order, repeated, or as one tensor of several.

use tilewright_core::build::Value;
use tilewright_core::dtype::DType;
use tilewright_core::expr::BinaryOp;

use crate::legalise::emitter::{Emitter, Tensor};
use crate::legalise::operands::Operands;
use crate::legalise::pointwise::{broadcast_extents, broadcast_load};
use crate::legalise::scalar::{add, less, subtract};
use crate::legalise::{Unsupported, unsupported};
use crate::operator::axis;
use crate::symbolic::SymInt;

type Emitted = Result<Vec<Tensor>, Unsupported>;

pub(crate) fn transpose(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    let order: Vec<usize> = match operands.ints("perm") {
        None => (0..x.rank()).rev().collect(),
        Some(order) => order.iter().map(|&number| axis(number, x.rank())).collect::<Result<_, _>>()?,
    };
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..x.rank()) {
        unsupported!("perm {order:?} must name each of {} dimensions once", x.rank());
    }
    let extents: Vec<SymInt> = order.iter().map(|&dimension| x.extents[dimension].clone()).collect();
    let result = emitter.compute(x.element, &extents, &mut |builder, indices| {
        let mut places = vec![Value::int(0); order.len()];
        for (&dimension, index) in order.iter().zip(indices) {
            places[dimension] = index.clone();
        }
        x.at(builder, &places)
    })?;
    Ok(vec![result])
}

pub(crate) fn expand(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    let shape = operands.symbols(1)?;
    let extents = broadcast_extents(&[&x.extents, &shape])?;
    let result =
        emitter.compute(x.element, &extents, &mut |builder, indices| broadcast_load(builder, &x, indices))?;
    Ok(vec![result])
}

pub(crate) fn tile(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    let repeats = operands.integers(1)?;
    if repeats.len() != x.rank() || repeats.iter().any(|&repeat| repeat < 0) {
        unsupported!("repeats {repeats:?} do not fit {} dimensions", x.rank());
    }
    let extents: Vec<SymInt> =
        x.extents.iter().zip(&repeats).map(|(extent, &repeat)| extent.scale(repeat)).collect();
    let ends = emitter.values(&x.extents)?;
    let result = emitter.compute(x.element, &extents, &mut |builder, indices| {
        let place = |dimension: usize| match (repeats[dimension], x.extents[dimension].is(1)) {
            (1, _) => indices[dimension].clone(),
            (_, true) => Value::int(0),
            _ => indices[dimension].binary(BinaryOp::Rem, ends[dimension].clone()),
        };
        x.at(builder, &(0..x.rank()).map(place).collect::<Vec<_>>())
    })?;
    Ok(vec![result])
}

/// How many tensors with symbolic extents become one kernel: their starts are sums of as many symbols, about which each condition asks. A
/// kernel of ninety such tensors took 18 seconds to compile.
const MOST_SYMBOLIC_PARTS: usize = 8;

/// Tensors one after the other along a dimension: each place takes its element from the tensor that it falls into.
pub(crate) fn concat(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let parts: Vec<Tensor> =
        (0..operands.len()).map(|place| operands.tensor(emitter, place)).collect::<Result<_, _>>()?;
    let Some(first) = parts.first() else { unsupported!("there are no inputs") };
    let Some(number) = operands.attributes().int("axis") else { unsupported!("attribute axis is missing") };
    let along = axis(number, first.rank())?;
    let mut extents = first.extents.clone();
    let mut starts = vec![SymInt::from(0)];
    for part in &parts {
        let differs = |dimension: usize| dimension != along && part.extents[dimension] != extents[dimension];
        if part.rank() != first.rank() || part.element != first.element || (0..first.rank()).any(differs) {
            unsupported!("whether the tensors fit each other depends on the call");
        }
        let start = starts.last().expect("there is a first start");
        starts.push(start + &part.extents[along]);
    }
    extents[along] = starts.pop().expect("there is an end");
    let symbolic = parts.iter().filter(|part| part.extents[along].as_constant().is_none()).count();
    if symbolic > MOST_SYMBOLIC_PARTS {
        unsupported!("{symbolic} tensors with extents that depend on the call are joined by copies");
    }
    let starts = emitter.values(&starts)?;
    let result = emitter.compute(first.element, &extents, &mut |builder, indices| {
        let load = |place: usize| {
            let mut places = indices.to_vec();
            if place > 0 {
                places[along] = subtract(&places[along], &starts[place]);
            }
            parts[place].at(builder, &places)
        };
        let last = load(parts.len() - 1);
        (0..parts.len() - 1)
            .rev()
            .fold(last, |rest, place| less(&indices[along], &starts[place + 1]).select(load(place), rest))
    })?;
    Ok(vec![result])
}

pub(crate) fn split(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    let along = operands.axis("axis", x.rank())?;
    let Some(extent) = x.extents[along].as_constant() else { unsupported!("the extent depends on the call") };
    let lengths = match operands.optional_integers(1)? {
        Some(lengths) => lengths,
        None => {
            let count = operands.attributes().int("num_outputs").unwrap_or(operands.outputs as i64);
            if count < 1 {
                unsupported!("there are no outputs");
            }
            let chunk = (extent + count - 1) / count;
            (0..count).map(|place| chunk.min(extent - place * chunk)).collect()
        }
    };
    if lengths.iter().sum::<i64>() != extent || lengths.iter().any(|&length| length < 0) {
        unsupported!("lengths {lengths:?} do not fit extent {extent}");
    }
    let mut start = 0;
    let mut parts = Vec::with_capacity(lengths.len());
    for length in lengths {
        let mut extents = x.extents.clone();
        extents[along] = length.into();
        parts.push(emitter.compute(x.element, &extents, &mut |builder, indices| {
            let mut places = indices.to_vec();
            if start > 0 {
                places[along] = add(&places[along], &Value::int(start));
            }
            x.at(builder, &places)
        })?);
        start += length;
    }
    Ok(parts)
}

/// Blocks of a picture as channels, or channels as blocks.
pub(crate) fn depth_to_space(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    let block = operands.attributes().int_or_default("blocksize");
    let ([batch, channels, height, width], 1..) = (&x.extents[..], block) else {
        unsupported!("expected batch, channels, height and width")
    };
    let Some(channels) = channels.as_constant().filter(|channels| channels % (block * block) == 0) else {
        unsupported!("the channels do not fit the blocks")
    };
    let rest = channels / (block * block);
    let columns_first = match operands.text("mode") {
        "DCR" => true,
        "CRD" => false,
        other => unsupported!("attribute mode must be DCR or CRD, not {other}"),
    };
    let extents = [batch.clone(), rest.into(), height.scale(block), width.scale(block)];
    let block = Value::typed_int(DType::I64, block);
    let result = emitter.compute(x.element, &extents, &mut |builder, indices| {
        let [batch, channel, row, column] = indices else { unreachable!("there are four loops") };
        let inside = |place: &Value| place.binary(BinaryOp::Rem, block.clone());
        let outside = |place: &Value| place.binary(BinaryOp::Div, block.clone());
        let within = add(&inside(row).binary(BinaryOp::Mul, block.clone()), &inside(column));
        let source = if columns_first {
            add(&within.binary(BinaryOp::Mul, Value::int(rest)), channel)
        } else {
            let size = block.binary(BinaryOp::Mul, block.clone());
            add(&channel.binary(BinaryOp::Mul, size), &within)
        };
        x.at(builder, &[batch.clone(), source, outside(row), outside(column)])
    })?;
    Ok(vec![result])
}

/// Blocks of a picture as channels: those of one place in their blocks beside each other.
pub(crate) fn space_to_depth(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    let block = operands.attributes().int_or_default("blocksize");
    let ([batch, channels, height, width], 1..) = (&x.extents[..], block) else {
        unsupported!("expected batch, channels, height and width")
    };
    for extent in [height, width] {
        if emitter.size(&extent.remainder(&block.into()))? != 0 {
            unsupported!("the blocks do not fit {extent} places");
        }
    }
    let parts = |extent: &SymInt| extent.floor_div(&block.into());
    let extents = [batch.clone(), channels.scale(block * block), parts(height), parts(width)];
    let (block, channels) = (Value::typed_int(DType::I64, block), emitter.value(channels)?);
    let result = emitter.compute(x.element, &extents, &mut |builder, indices| {
        let [batch, channel, row, column] = indices else { unreachable!("there are four loops") };
        let [place, channel] = [BinaryOp::Div, BinaryOp::Rem].map(|op| channel.binary(op, channels.clone()));
        let [down, right] = [BinaryOp::Div, BinaryOp::Rem].map(|op| place.binary(op, block.clone()));
        let source = |part: &Value, within: &Value| add(&part.binary(BinaryOp::Mul, block.clone()), within);
        x.at(builder, &[batch.clone(), channel, source(row, &down), source(column, &right)])
    })?;
    Ok(vec![result])
}

//! Parts of tensors, padding, places that other tensors name, and pictures of other sizes.

use tilewright_core::build::{UpdateOp, Value};
use tilewright_core::dtype::DType;
use tilewright_core::expr::BinaryOp;

use crate::legalise::emitter::{Emitter, Tensor, here};
use crate::legalise::operands::Operands;
use crate::legalise::pointwise::{inside, moved, scaled};
use crate::legalise::scalar::{add, both, less, number};
use crate::legalise::{Unsupported, unsupported};
use crate::operator::axis;
use crate::symbolic::SymInt;

type Emitted = Result<Vec<Tensor>, Unsupported>;

/// A part of a tensor, with steps.
pub(crate) fn slice(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    let (starts, ends) = (operands.symbols(1)?, operands.symbols(2)?);
    let axes = operands.optional_integers(3)?.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = operands.optional_integers(4)?.unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), axes.len(), steps.len()].iter().any(|&length| length != starts.len())
        || steps.contains(&0)
    {
        unsupported!("starts, ends, axes and steps do not fit each other");
    }
    let mut extents = x.extents.clone();
    let mut lines = vec![(SymInt::from(0), 1); x.rank()];
    for (((start, end), &number), &step) in starts.iter().zip(&ends).zip(&axes).zip(&steps) {
        let dimension = axis(number, x.rank())?;
        let first;
        (first, extents[dimension]) = line(emitter, [start, end], step, &x.extents[dimension])?;
        lines[dimension] = (first, step);
    }
    let firsts: Vec<SymInt> = lines.iter().map(|(first, _)| first.clone()).collect();
    let firsts = emitter.values(&firsts)?;
    let result = emitter.compute(x.element, &extents, &mut |builder, indices| {
        let place = |dimension: usize| {
            let (first, step) = &lines[dimension];
            let moved = scaled(&indices[dimension], *step);
            if first.is(0) { moved } else { add(&moved, &firsts[dimension]) }
        };
        x.at(builder, &(0..x.rank()).map(place).collect::<Vec<_>>())
    })?;
    Ok(vec![result])
}

/// The first place of a slice and the number of its places: bounds count from the end when they are negative, and are clamped.
fn line(
    emitter: &Emitter,
    [start, end]: [&SymInt; 2],
    step: i64,
    extent: &SymInt,
) -> Result<(SymInt, SymInt), Unsupported> {
    let last = extent - &1.into();
    // A slice that runs backwards ends before the first place.
    let (low, high) =
        if step > 0 { (SymInt::from(0), extent.clone()) } else { (SymInt::from(-1), last.clone()) };
    let clamped = |bound: &SymInt, low: &SymInt| -> Result<SymInt, Unsupported> {
        let is_from_end = !emitter.at_most(&0.into(), bound)?;
        let bound = if is_from_end { extent + bound } else { bound.clone() };
        Ok(match (emitter.at_most(&bound, low)?, emitter.at_most(&high, &bound)?) {
            (true, _) => low.clone(),
            (_, true) => high.clone(),
            // The bound is the smaller one for these sizes. Written so, loads are seen to stay inside.
            _ => bound.minimum(&high),
        })
    };
    let (start, end) = (clamped(start, &0.into())?, clamped(end, &low)?);
    let distance = if step > 0 { &end - &start } else { &start - &end };
    if emitter.at_most(&distance, &0.into())? {
        unsupported!("the slice has no elements");
    }
    let is_fixed = [&start, &end, extent].iter().all(|integer| integer.as_constant().is_some());
    if !is_fixed && (step != 1 || !start.is_not_negative()) {
        unsupported!("whether the slice stays inside depends on the call");
    }
    Ok((start, distance.ceil_div(&step.abs().into())))
}

/// Places around a tensor: a constant, the nearest element, or elements of the tensor mirrored or repeated.
pub(crate) fn pad(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    let pads = operands.integers(1)?;
    let axes = operands.optional_integers(3)?.unwrap_or_else(|| (0..x.rank() as i64).collect());
    if pads.len() != 2 * axes.len() || pads.iter().any(|&pad| pad > 1 << 31) {
        unsupported!("pads {pads:?} do not fit {} dimensions", axes.len());
    }
    let mut around = vec![(0, 0); x.rank()];
    for (place, &number) in axes.iter().enumerate() {
        around[axis(number, x.rank())?] = (pads[place], pads[place + axes.len()]);
    }
    let fill = match operands.optional(emitter, 2)? {
        None => number(x.dtype, 0.0),
        Some(Tensor { source: crate::legalise::emitter::Source::Literal(value), .. }) => value,
        Some(_) => unsupported!("the fill value depends on the call"),
    };
    let extents: Vec<SymInt> = x
        .extents
        .iter()
        .zip(&around)
        .map(|(extent, (before, after))| extent + &SymInt::from(before + after))
        .collect();
    let mut fits = operands.text("mode") == "constant" || emitter.has_elements(&x.extents)?;
    for extent in &extents {
        fits &= emitter.at_most(&0.into(), extent)?;
    }
    if !fits {
        unsupported!("the padding does not fit the tensor");
    }
    let ends = emitter.values(&x.extents)?;
    let mode = operands.text("mode");
    let sources = (0..x.rank()).map(|dimension| match around[dimension] {
        (0, 0) => Ok(Padded::Inside),
        (before, _) => Padded::of(mode, &x.extents[dimension], before),
    });
    let sources = sources.collect::<Result<Vec<_>, _>>()?;
    let place_of = |dimension: usize, index: &Value| {
        sources[dimension].place(&moved(index, around[dimension].0), &ends[dimension])
    };
    if let Some(parts) = parts(emitter, &x, &around, &sources) {
        return Ok(vec![by_parts(emitter, &x, &extents, parts, &place_of)?]);
    }
    let result = emitter.compute(x.element, &extents, &mut |builder, indices| {
        let mut condition: Option<Value> = None;
        let mut places = Vec::with_capacity(indices.len());
        for (dimension, index) in indices.iter().enumerate() {
            let (before, after) = around[dimension];
            if mode == "constant" && (before > 0 || after > 0) {
                let inside = inside(&moved(index, before), &ends[dimension]);
                condition = Some(condition.map_or(inside.clone(), |condition| both(&condition, &inside)));
            }
            places.push(place_of(dimension, index));
        }
        let value = x.at(builder, &places);
        condition.map_or(value.clone(), |condition| condition.select(value, fill.clone()))
    })?;
    Ok(vec![result])
}

/// The parts of a dimension of a padded tensor: before, inside, and behind the tensor.
struct Parts {
    dimension: usize,
    /// Each with its first place and its extent.
    ranges: Vec<(SymInt, SymInt)>,
    /// The part that lies inside.
    inside: usize,
}

/// The parts of the innermost dimension, where its padding repeats elements: those inside are copied as they lie.
fn parts(emitter: &Emitter, x: &Tensor, around: &[(i64, i64)], sources: &[Padded]) -> Option<Parts> {
    let order = emitter.order(x.rank());
    let dimension = order.dimensions().filter(|&dimension| !x.extents[dimension].is(1)).last()?;
    let ((before, after), extent) = (around[dimension], &x.extents[dimension]);
    if matches!(sources[dimension], Padded::Inside) || before < 0 || after < 0 {
        return None;
    }
    let starts = [SymInt::from(0), before.into(), extent + &before.into()];
    let all = starts.into_iter().zip([before.into(), extent.clone(), after.into()]);
    let ranges = all.filter(|(_, extent)| !extent.is(0)).collect();
    Some(Parts { dimension, ranges, inside: usize::from(before > 0) })
}

/// A padded tensor, whose elements come from where `place_of` says, with a loop nest for each part of a dimension.
fn by_parts(
    emitter: &mut Emitter,
    x: &Tensor,
    extents: &[SymInt],
    parts: Parts,
    place_of: &dyn Fn(usize, &Value) -> Value,
) -> Result<Tensor, Unsupported> {
    let result = emitter.local(x.element, extents, None)?;
    for (part, (start, extent)) in parts.ranges.iter().enumerate() {
        let (mut own, start) = (extents.to_vec(), emitter.value(start)?);
        own[parts.dimension] = extent.clone();
        emitter.nest(&own, &mut |builder, indices| {
            let mut target = indices.to_vec();
            target[parts.dimension] = add(&indices[parts.dimension], &start);
            let mut places: Vec<Value> =
                target.iter().enumerate().map(|(dimension, index)| place_of(dimension, index)).collect();
            if part == parts.inside {
                places[parts.dimension] = indices[parts.dimension].clone();
            }
            let value = x.at(builder, &places);
            result.store(builder, &target, UpdateOp::Set, value, here!());
        })?;
    }
    Ok(result)
}

/// Where the elements of a padded dimension come from.
#[derive(Clone, Copy)]
enum Padded {
    /// From the same place, if it is inside.
    Inside,
    /// From the nearest place.
    Edge,
    /// From this period of places, after a shift that leaves no place negative; in the second half of the period places run backwards
    /// if it is mirrored.
    Periodic { period: i64, shift: i64, mirrored: bool },
}

impl Padded {
    fn of(mode: &str, extent: &SymInt, before: i64) -> Result<Self, Unsupported> {
        let mirrored = match mode {
            "constant" => return Ok(Padded::Inside),
            "edge" => return Ok(Padded::Edge),
            "reflect" => true,
            "wrap" => false,
            other => unsupported!("mode {other} has no kernel form"),
        };
        let Some(extent) = extent.as_constant() else { unsupported!("the extent depends on the call") };
        if extent == 1 {
            return Ok(Padded::Edge);
        }
        let period = if mirrored { 2 * (extent - 1) } else { extent };
        let shift = (before.max(0) + period - 1) / period * period;
        Ok(Padded::Periodic { period, shift, mirrored })
    }

    fn place(self, place: &Value, end: &Value) -> Value {
        match self {
            Padded::Inside => place.clone(),
            Padded::Edge => {
                let last = add(end, &Value::int(-1));
                place.binary(BinaryOp::Max, Value::int(0)).binary(BinaryOp::Min, last)
            }
            Padded::Periodic { period, shift, mirrored } => {
                let within = moved(place, -shift).binary(BinaryOp::Rem, Value::int(period));
                if !mirrored {
                    return within;
                }
                let backwards = Value::int(period).binary(BinaryOp::Sub, within.clone());
                within.binary(BinaryOp::Min, backwards)
            }
        }
    }
}

/// The places along a dimension that an integer tensor names. Negative ones count from the end; others outside are an error.
pub(crate) fn gather(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let (x, numbers) = (operands.tensor(emitter, 0)?, operands.tensor(emitter, 1)?);
    if !matches!(numbers.dtype, DType::I32 | DType::I64) {
        unsupported!("indices of type {} have no kernel form", numbers.element);
    }
    let along = operands.axis("axis", x.rank())?;
    let extents = [&x.extents[..along], &numbers.extents, &x.extents[along + 1..]].concat();
    let end = emitter.value(&x.extents[along])?;
    let rank = numbers.rank();
    let result = emitter.compute(x.element, &extents, &mut |builder, indices| {
        let number = numbers.at(builder, &indices[along..along + rank]).cast(DType::I64);
        let place = less(&number, &Value::typed_int(DType::I64, 0)).select(add(&number, &end), number);
        let places = [&indices[..along], &[place], &indices[along + rank..]].concat();
        x.at(builder, &places)
    })?;
    Ok(vec![result])
}

/// Pictures enlarged by whole numbers, each element repeated.
pub(crate) fn resize(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    let repeats = operands.text("mode") == "nearest"
        && operands.text("coordinate_transformation_mode") == "asymmetric"
        && operands.text("nearest_mode") == "floor"
        && operands.ints("axes").is_none();
    if !repeats {
        unsupported!("only repetition has a kernel form");
    }
    let scales = match operands.contents(2)?.filter(|scales| !scales.is_empty()) {
        Some(scales) => scales.cast(crate::tensor::ElementType::F64).ok(),
        None => unsupported!("only scales have a kernel form"),
    };
    let scales = scales.as_ref().and_then(|scales| scales.as_slice::<f64>()).unwrap_or_default();
    if scales.len() != x.rank()
        || scales.iter().any(|scale| scale.fract() != 0.0 || !(1.0..1e6).contains(scale))
    {
        unsupported!("only whole scales have a kernel form");
    }
    let extents: Vec<SymInt> =
        x.extents.iter().zip(scales).map(|(extent, &scale)| extent.scale(scale as i64)).collect();
    let result = emitter.compute(x.element, &extents, &mut |builder, indices| {
        let place = |(index, &scale): (&Value, &f64)| {
            if scale == 1.0 { index.clone() } else { index.binary(BinaryOp::Div, Value::int(scale as i64)) }
        };
        x.at(builder, &indices.iter().zip(scales).map(place).collect::<Vec<_>>())
    })?;
    Ok(vec![result])
}

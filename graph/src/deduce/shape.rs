//! Types of what changes shapes.

use crate::deduce::elementwise::{broadcast_extents, shape_of};
use crate::deduce::{Deduction, Fact};
use crate::ir::{Attribute, Shape};
use crate::operator::{Fault, axis, refuse};
use crate::symbolic::SymInt;
use crate::tensor::ElementType;

fn one(deduction: &Deduction<'_>, shape: Shape) -> Result<Vec<Fact>, Fault> {
    Ok(vec![Fact::tensor(deduction.element(0), shape)])
}

fn unknown(deduction: &Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    one(deduction, Shape::Unknown)
}

fn product(extents: &[SymInt]) -> SymInt {
    extents.iter().fold(SymInt::from(1), |product, extent| &product * extent)
}

/// A new shape, of which one extent may be -1 and extents of 0 are copied.
pub(crate) fn reshape(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let Some(wanted) = deduction.contents(1) else {
        return match deduction.length(1) {
            Some(rank) => {
                let shape = deduction.fresh_shape(rank);
                one(deduction, shape)
            }
            None => unknown(deduction),
        };
    };
    let input = deduction.extents(0);
    let copies = !deduction.flag("allowzero");
    let mut extents = Vec::with_capacity(wanted.len());
    let mut open = None;
    for (dimension, extent) in wanted.iter().enumerate() {
        extents.push(match extent.as_constant() {
            Some(-1) => {
                open = Some(dimension);
                SymInt::from(1)
            }
            Some(0) if copies => match input {
                None => deduction.fresh(),
                Some(input) => match input.get(dimension) {
                    Some(extent) => extent.clone(),
                    None => {
                        refuse!("the shape copies dimension {dimension} of a tensor of rank {}", input.len())
                    }
                },
            },
            _ => extent.clone(),
        });
    }
    if let Some(dimension) = open {
        extents[dimension] = match input {
            Some(input) => product(input).floor_div(&product(&extents)),
            None => deduction.fresh(),
        };
    }
    one(deduction, Shape::Known(extents))
}

/// Two dimensions of all.
pub(crate) fn flatten(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let Some(extents) = deduction.extents(0) else {
        let shape = deduction.fresh_shape(2);
        return one(deduction, shape);
    };
    let number = deduction.int("axis").unwrap_or(1);
    let place = if number == extents.len() as i64 { extents.len() } else { axis(number, extents.len())? };
    let (outer, inner) = extents.split_at(place);
    one(deduction, Shape::Known(vec![product(outer), product(inner)]))
}

/// Without dimensions of extent 1.
pub(crate) fn squeeze(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let Some(extents) = deduction.extents(0) else { return unknown(deduction) };
    let kept: Vec<bool> = if deduction.input(1).is_some() {
        let Some(axes) = deduction.constants(1) else {
            return match deduction.length(1) {
                Some(removed) if removed <= extents.len() => {
                    let shape = deduction.fresh_shape(extents.len() - removed);
                    one(deduction, shape)
                }
                _ => unknown(deduction),
            };
        };
        let mut kept = vec![true; extents.len()];
        for number in axes {
            kept[axis(number, extents.len())?] = false;
        }
        kept
    } else if extents.iter().all(|extent| extent.as_constant().is_some()) {
        extents.iter().map(|extent| !extent.is(1)).collect()
    } else {
        return unknown(deduction);
    };
    let kept = extents.iter().zip(kept).filter(|(_, kept)| *kept);
    one(deduction, Shape::Known(kept.map(|(extent, _)| extent.clone()).collect()))
}

/// With more dimensions of extent 1.
pub(crate) fn unsqueeze(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let (Some(extents), Some(axes)) = (deduction.extents(0), deduction.constants(1)) else {
        return unknown(deduction);
    };
    let rank = extents.len() + axes.len();
    let mut added = vec![false; rank];
    for number in axes {
        added[axis(number, rank)?] = true;
    }
    let mut old = extents.iter();
    let extent = |added: &bool| if *added { Some(SymInt::from(1)) } else { old.next().cloned() };
    match added.iter().map(extent).collect::<Option<Vec<_>>>() {
        Some(extents) => one(deduction, Shape::Known(extents)),
        None => refuse!("the axes name a dimension twice"),
    }
}

/// Dimensions in another order.
pub(crate) fn transpose(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let Some(extents) = deduction.extents(0) else { return unknown(deduction) };
    let order = match deduction.ints("perm") {
        None => (0..extents.len()).rev().collect(),
        Some(order) => {
            order.iter().map(|&number| axis(number, extents.len())).collect::<Result<Vec<_>, _>>()?
        }
    };
    one(deduction, Shape::Known(order.into_iter().map(|dimension| extents[dimension].clone()).collect()))
}

/// The extents of a tensor, which are its contents too.
pub(crate) fn shape(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let element = Some(ElementType::I64);
    let Some(extents) = deduction.extents(0) else {
        let shape = deduction.fresh_shape(1);
        return Ok(vec![Fact::tensor(element, shape)]);
    };
    let rank = extents.len() as i64;
    let clamp =
        |number: i64| (if number < 0 { number.saturating_add(rank) } else { number }).clamp(0, rank) as usize;
    let start = clamp(deduction.int("start").unwrap_or(0));
    let end = clamp(deduction.int("end").unwrap_or(rank)).max(start);
    let mut fact = Fact::tensor(element, Shape::fixed(&[end - start]));
    fact.contents = Some(extents[start..end].to_vec().into());
    Ok(vec![fact])
}

/// The number of elements.
pub(crate) fn size(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let mut fact = Fact::tensor(Some(ElementType::I64), Shape::fixed(&[]));
    fact.contents = deduction.extents(0).map(|extents| vec![product(extents)].into());
    Ok(vec![fact])
}

/// A shape that broadcasts with the one that an input holds.
pub(crate) fn expand(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let (own, wanted) = (deduction.extents(0), deduction.contents(1));
    match broadcast_extents(deduction, &[own, wanted])? {
        Some(extents) => one(deduction, Shape::Known(extents)),
        None => match (own, deduction.length(1)) {
            (Some(own), Some(length)) => {
                let shape = deduction.fresh_shape(own.len().max(length));
                one(deduction, shape)
            }
            _ => unknown(deduction),
        },
    }
}

/// Each dimension repeated.
pub(crate) fn tile(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let Some(extents) = deduction.extents(0) else { return unknown(deduction) };
    let shape = match deduction.contents(1) {
        Some(repeats) if repeats.len() == extents.len() => {
            Shape::Known(extents.iter().zip(repeats).map(|(extent, repeat)| extent * repeat).collect())
        }
        _ => deduction.fresh_shape(extents.len()),
    };
    one(deduction, shape)
}

/// Tensors one after the other.
pub(crate) fn concat(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let inputs: Option<Vec<_>> =
        (0..deduction.call.inputs.len()).map(|place| deduction.extents(place)).collect();
    let Some(first) = inputs.as_ref().and_then(|inputs| inputs.first().copied()) else {
        return unknown(deduction);
    };
    let inputs = inputs.unwrap_or_default();
    let dimension = axis(deduction.int("axis").unwrap_or(0), first.len())?;
    if inputs.iter().any(|extents| extents.len() != first.len()) {
        refuse!("tensors of different ranks cannot be joined");
    }
    let mut extents = first.to_vec();
    for other in &inputs[1..] {
        for (place, (extent, other)) in extents.iter_mut().zip(*other).enumerate() {
            if place == dimension {
                *extent = &*extent + other;
            } else if extent.as_constant().is_none() && other.as_constant().is_some() {
                *extent = other.clone();
            }
        }
    }
    one(deduction, Shape::Known(extents))
}

/// Parts along a dimension.
pub(crate) fn split(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let element = deduction.element(0);
    let Some(extents) = deduction.extents(0) else {
        return Ok(vec![Fact::tensor(element, Shape::Unknown); deduction.outputs]);
    };
    let dimension = axis(deduction.int("axis").unwrap_or(0), extents.len())?;
    let parts = deduction.outputs;
    let lengths: Vec<SymInt> = match (deduction.input(1), deduction.contents(1)) {
        (Some(_), Some(lengths)) if lengths.len() == parts => lengths.to_vec(),
        (Some(_), _) => (0..parts).map(|_| deduction.fresh()).collect(),
        (None, _) => match extents[dimension].as_constant() {
            Some(extent) => {
                let length = (extent + parts as i64 - 1) / parts as i64;
                (0..parts as i64).map(|part| length.min((extent - part * length).max(0)).into()).collect()
            }
            None if parts == 1 => vec![extents[dimension].clone()],
            None => (0..parts).map(|_| deduction.fresh()).collect(),
        },
    };
    Ok(lengths
        .into_iter()
        .map(|length| {
            let mut extents = extents.to_vec();
            extents[dimension] = length;
            Fact::tensor(element, Shape::Known(extents))
        })
        .collect())
}

/// A part of each dimension.
pub(crate) fn slice(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let Some(input) = deduction.extents(0) else { return unknown(deduction) };
    let (starts, ends) = (deduction.contents(1), deduction.contents(2));
    let count = starts.map(<[SymInt]>::len).or(deduction.length(1));
    let axes = if deduction.input(3).is_some() {
        deduction.constants(3)
    } else {
        count.map(|count| (0..count as i64).collect())
    };
    let steps =
        if deduction.input(4).is_some() { deduction.constants(4) } else { count.map(|count| vec![1; count]) };
    let Some(axes) = axes else {
        let shape = deduction.fresh_shape(input.len());
        return one(deduction, shape);
    };
    let mut extents = input.to_vec();
    for (place, number) in axes.into_iter().enumerate() {
        let dimension = axis(number, input.len())?;
        let bound = |list: Option<&[SymInt]>| list.and_then(|list| list.get(place).cloned());
        let step = steps.as_ref().and_then(|steps| steps.get(place).copied());
        let length = match (bound(starts), bound(ends), step) {
            (Some(start), Some(end), Some(step)) => slice_length(&start, &end, step, &input[dimension]),
            _ => None,
        };
        extents[dimension] = length.unwrap_or_else(|| deduction.fresh());
    }
    one(deduction, Shape::Known(extents))
}

/// The length of a slice, where it is known.
fn slice_length(start: &SymInt, end: &SymInt, step: i64, extent: &SymInt) -> Option<SymInt> {
    if let (Some(start), Some(end), Some(extent)) =
        (start.as_constant(), end.as_constant(), extent.as_constant())
    {
        let extent = usize::try_from(extent).ok()?;
        return (step != 0).then(|| crate::operator::slice_places(start, end, step, extent).len().into());
    }
    if step < 1 {
        // Everything in reverse.
        let all = step == -1 && (start.is(-1)) && end.as_constant().is_some_and(|end| end < -(1 << 31));
        return all.then(|| extent.clone());
    }
    let zero = SymInt::from(0);
    let clamp = |bound: &SymInt| match bound.as_constant() {
        Some(bound) if bound < 0 => (extent + &bound.into()).maximum(&zero),
        _ => bound.minimum(extent),
    };
    // A bound that is no constant must not be negative, or else it would count from the end.
    let plain = |bound: &SymInt| bound.as_constant().is_some() || bound.is_not_negative();
    if !plain(start) || !plain(end) {
        return None;
    }
    let end = if end.as_constant().is_some_and(|end| end >= 1 << 31) { extent.clone() } else { clamp(end) };
    Some((&end - &clamp(start)).maximum(&zero).ceil_div(&step.into()))
}

/// Places around each dimension.
pub(crate) fn pad(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let Some(input) = deduction.extents(0) else { return unknown(deduction) };
    let axes = if deduction.input(3).is_some() {
        deduction.constants(3)
    } else {
        Some((0..input.len() as i64).collect())
    };
    let (Some(pads), Some(axes)) = (deduction.contents(1), axes) else {
        let shape = deduction.fresh_shape(input.len());
        return one(deduction, shape);
    };
    if pads.len() != 2 * axes.len() {
        refuse!("{} numbers do not pad {} dimensions", pads.len(), axes.len());
    }
    let mut extents = input.to_vec();
    for (place, &number) in axes.iter().enumerate() {
        let dimension = axis(number, input.len())?;
        extents[dimension] = &(&input[dimension] + &pads[place]) + &pads[place + axes.len()];
    }
    one(deduction, Shape::Known(extents))
}

/// The indices' shape in place of one dimension.
pub(crate) fn gather(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let (Some(input), Some(indices)) = (deduction.extents(0), deduction.extents(1)) else {
        return unknown(deduction);
    };
    let dimension = axis(deduction.int("axis").unwrap_or(0), input.len())?;
    let (outer, inner) = (&input[..dimension], &input[dimension + 1..]);
    one(deduction, Shape::Known(outer.iter().chain(indices).chain(inner).cloned().collect()))
}

/// The outer dimensions of the indices, and the dimensions that a row of them does not name.
pub(crate) fn gather_nd(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let batch = usize::try_from(deduction.int("batch_dims").unwrap_or(0)).unwrap_or(usize::MAX);
    let (Some(input), Some([outer @ .., depth])) = (deduction.extents(0), deduction.extents(1)) else {
        return one(deduction, Shape::Unknown);
    };
    let depth = depth.as_constant().and_then(|depth| usize::try_from(depth).ok());
    let inner = depth.and_then(|depth| input.get(batch.checked_add(depth)?..));
    let shape = match inner {
        Some(inner) => Shape::Known([outer, inner].concat()),
        None => Shape::Unknown,
    };
    one(deduction, shape)
}

/// The shape of the indices.
pub(crate) fn gather_like_indices(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let shape = shape_of(deduction, 1);
    one(deduction, shape)
}

/// The shape that an input holds.
pub(crate) fn constant_of_shape(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let element = match deduction.call.attributes.get("value") {
        Some(Attribute::Tensor(value)) => value.element(),
        _ => ElementType::F32,
    };
    let shape = match (deduction.contents(0), deduction.length(0)) {
        (Some(extents), _) => Shape::Known(extents.to_vec()),
        (None, Some(rank)) => deduction.fresh_shape(rank),
        (None, None) => Shape::Unknown,
    };
    Ok(vec![Fact::tensor(Some(element), shape)])
}

/// Numbers from a start to a limit.
pub(crate) fn range(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let number = |place: usize| deduction.contents(place).and_then(<[SymInt]>::first);
    let extent = match (number(0), number(1), number(2).and_then(SymInt::as_constant)) {
        (Some(start), Some(limit), Some(step)) if step > 0 => {
            (limit - start).maximum(&0.into()).ceil_div(&step.into())
        }
        _ => deduction.fresh(),
    };
    one(deduction, Shape::Known(vec![extent]))
}

/// One more dimension of given extent.
pub(crate) fn one_hot(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let shape = match deduction.extents(0) {
        None => Shape::Unknown,
        Some(indices) => {
            let depth = deduction.contents(1).and_then(<[SymInt]>::first).cloned();
            let depth = depth.unwrap_or_else(|| deduction.fresh());
            let mut extents = indices.to_vec();
            extents.insert(axis(deduction.int("axis").unwrap_or(-1), indices.len() + 1)?, depth);
            Shape::Known(extents)
        }
    };
    Ok(vec![Fact::tensor(deduction.element(2), shape)])
}

/// The shape of the input, with the element type of an attribute.
pub(crate) fn eye_like(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let element = match deduction.call.attributes.get("dtype") {
        Some(Attribute::Element(element)) => Some(*element),
        _ => deduction.element(0),
    };
    Ok(vec![Fact::tensor(element, shape_of(deduction, 0))])
}

/// Coordinates of as many elements as there are.
pub(crate) fn non_zero(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let rank = deduction.extents(0).map(|extents| SymInt::from(extents.len()));
    let rank = rank.unwrap_or_else(|| deduction.fresh());
    let count = deduction.fresh();
    Ok(vec![Fact::tensor(Some(ElementType::I64), Shape::Known(vec![rank, count]))])
}

/// Types of `TopK`: the `k` largest or smallest elements of a dimension, and their indices.
pub(crate) fn top_k(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let shape = match deduction.extents(0) {
        None => Shape::Unknown,
        Some(input) => {
            let k = deduction.contents(1).and_then(<[SymInt]>::first).cloned();
            let mut extents = input.to_vec();
            extents[axis(deduction.int("axis").unwrap_or(-1), input.len())?] =
                k.unwrap_or_else(|| deduction.fresh());
            Shape::Known(extents)
        }
    };
    let places = Fact::tensor(Some(ElementType::I64), shape.clone());
    Ok(vec![Fact::tensor(deduction.element(0), shape), places])
}

/// Other extents, from constant scales or from sizes.
pub(crate) fn resize(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let Some(extents) = deduction.extents(0) else { return unknown(deduction) };
    let stretches = deduction.call.attributes.get("keep_aspect_ratio_policy").is_none()
        || matches!(deduction.call.attributes.get("keep_aspect_ratio_policy"), Some(Attribute::Text(text)) if &**text == "stretch");
    let shape = match deduction.contents(3) {
        Some(sizes) if sizes.len() == extents.len() && stretches && deduction.ints("axes").is_none() => {
            Shape::Known(sizes.to_vec())
        }
        _ => deduction.fresh_shape(extents.len()),
    };
    one(deduction, shape)
}

/// Blocks of a picture as channels.
pub(crate) fn space_to_depth(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    blocks(deduction, |[batch, channels, height, width], block| {
        let divided = |extent: &SymInt| extent.floor_div(&block.into());
        [batch.clone(), channels.scale(block * block), divided(height), divided(width)]
    })
}

/// Channels of a picture as blocks.
pub(crate) fn depth_to_space(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    blocks(deduction, |[batch, channels, height, width], block| {
        let channels = channels.floor_div(&(block * block).into());
        [batch.clone(), channels, height.scale(block), width.scale(block)]
    })
}

fn blocks(
    deduction: &mut Deduction<'_>,
    extents: impl Fn([&SymInt; 4], i64) -> [SymInt; 4],
) -> Result<Vec<Fact>, Fault> {
    let block = deduction.int("blocksize").filter(|block| (1..1 << 20).contains(block));
    let shape = match (deduction.extents(0), block) {
        (Some([batch, channels, height, width]), Some(block)) => {
            Shape::Known(extents([batch, channels, height, width], block).to_vec())
        }
        _ => Shape::Unknown,
    };
    one(deduction, shape)
}

/// As many elements along a dimension, or of all, as there are true conditions.
pub(crate) fn compress(deduction: &mut Deduction<'_>) -> Result<Vec<Fact>, Fault> {
    let count = deduction.fresh();
    let shape = match (deduction.int("axis"), deduction.extents(0)) {
        (None, _) => Shape::Known(vec![count]),
        (Some(_), None) => Shape::Unknown,
        (Some(number), Some(input)) => {
            let mut extents = input.to_vec();
            extents[axis(number, input.len())?] = count;
            Shape::Known(extents)
        }
    };
    one(deduction, shape)
}

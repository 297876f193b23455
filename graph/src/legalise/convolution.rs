//! Convolutions.

use tilewright_core::build::{KernelBuilder, UpdateOp, Value};
use tilewright_core::expr::BinaryOp;

use crate::legalise::emitter::{Bound, Emitter, Tensor, here, nest};
use crate::legalise::normalisation::per_channel;
use crate::legalise::operands::Operands;
use crate::legalise::pointwise::{broadcast, inside, moved, scaled};
use crate::legalise::scalar::{add, both, computing, multiply, number};
use crate::legalise::window::Windows;
use crate::legalise::{Order, Unsupported, unsupported};
use crate::symbolic::SymInt;
use crate::tensor::ElementType;

/// A convolution of any number of spatial dimensions: padded input, sums of products, bias.
pub(crate) fn conv(emitter: &mut Emitter, operands: &Operands<'_>) -> Result<Vec<Tensor>, Unsupported> {
    let (x, weights) = (operands.tensor(emitter, 0)?, operands.tensor(emitter, 1)?);
    if x.rank() < 2 || x.rank() != weights.rank() || !x.dtype.is_float() || x.element != weights.element {
        unsupported!("only floats with batch, channels and as many spatial dimensions have a kernel form");
    }
    let fixed = emitter.sizes(&weights.extents)?;
    if weights.extents.iter().any(|extent| extent.as_constant().is_none()) {
        unsupported!("the extents of weights must not depend on the call");
    }
    let shape = Shape::of(operands, &x, &fixed)?;
    let mut windows = Windows::of(emitter, operands, &x.extents[2..], &fixed[2..])?;
    let weights = with_fewer_taps(emitter, weights, &mut windows, &x.extents[2..])?;
    let zero = number(x.dtype, 0.0);
    let padded = if windows.has_padding() { pad(emitter, &x, &windows, &zero)? } else { x.clone() };
    let sums = multiply_windows(emitter, [&padded, &weights], &windows, &shape, x.element)?;
    let Some(bias) = operands.optional(emitter, 2)? else { return Ok(vec![sums]) };
    let bias = per_channel(emitter, bias, x.rank())?;
    let (element, dtype, wide) = (x.element, x.dtype, computing(x.dtype));
    let sum = |values: &[Value]| add(&values[0].cast(wide), &values[1].cast(wide)).cast(dtype);
    Ok(vec![broadcast(emitter, &[sums, bias], element, &sum)?])
}

/// Weights without the taps that meet nothing but padding. In floats, like [leaving out products with padding](tilewright_core::lower), this takes weights for
/// finite.
pub(super) fn with_fewer_taps(
    emitter: &mut Emitter,
    weights: Tensor,
    windows: &mut Windows,
    input: &[SymInt],
) -> Result<Tensor, Unsupported> {
    let front = windows.leave_out_taps(input);
    let extents = [&weights.extents[..2], &windows.kernel()[..]].concat();
    if extents == weights.extents {
        return Ok(weights);
    }
    emitter.compute(weights.element, &extents, &mut |builder, own| {
        let taps = own[2..].iter().zip(&front).map(|(tap, &front)| add(tap, &Value::int(front as i64)));
        let places: Vec<Value> = own[..2].iter().cloned().chain(taps).collect();
        weights.at(builder, &places)
    })
}

/// The extents of a convolution, but for its windows.
pub(super) struct Shape {
    batch: SymInt,
    pub(super) groups: usize,
    /// Output channels of one group.
    pub(super) filters: usize,
    /// Input channels of one group.
    pub(super) channels: usize,
}

impl Shape {
    /// A convolution of `groups` groups, each from `channels` to `filters` channels.
    pub(super) fn new(batch: SymInt, groups: usize, filters: usize, channels: usize) -> Self {
        Shape { batch, groups, filters, channels }
    }

    /// Reads the extents of an input and of weights of fixed extents.
    pub(super) fn of(operands: &Operands<'_>, x: &Tensor, weights: &[usize]) -> Result<Self, Unsupported> {
        let groups = usize::try_from(operands.attributes().int_or_default("group")).unwrap_or(0);
        let (filters, channels) = (weights[0], weights[1]);
        if groups == 0 || filters % groups != 0 || !x.extents[1].is((groups * channels) as i64) {
            unsupported!("{groups} groups do not fit the channels");
        }
        Ok(Shape { batch: x.extents[0].clone(), groups, filters: filters / groups, channels })
    }
}

/// The input with a number around it, as far as windows reach.
pub(super) fn pad(
    emitter: &mut Emitter,
    x: &Tensor,
    windows: &Windows,
    fill: &Value,
) -> Result<Tensor, Unsupported> {
    let mut extents = x.extents[..2].to_vec();
    for (dimension, extent) in x.extents[2..].iter().enumerate() {
        let around = windows.fixed.before[dimension] + windows.behind(dimension);
        extents.push(extent + &around.into());
    }
    let ends = emitter.values(&x.extents[2..])?;
    let before = windows.fixed.before.clone();
    emitter.compute(x.element, &extents, &mut |builder, indices| {
        let mut places = indices[..2].to_vec();
        let mut condition: Option<Value> = None;
        for (dimension, index) in indices[2..].iter().enumerate() {
            let place = moved(index, before[dimension]);
            if before[dimension] != 0 || windows.behind(dimension) != 0 {
                let inside = inside(&place, &ends[dimension]);
                condition = Some(condition.map_or(inside.clone(), |condition| both(&condition, &inside)));
            }
            places.push(place);
        }
        let value = x.at(builder, &places);
        condition.map_or(value.clone(), |condition| condition.select(value, fill.clone()))
    })
}

/// The sums of products of all windows with their filters, as elements of some type.
pub(super) fn multiply_windows(
    emitter: &mut Emitter,
    [x, weights]: [&Tensor; 2],
    windows: &Windows,
    shape: &Shape,
    element: ElementType,
) -> Result<Tensor, Unsupported> {
    let Some(dtype) = element.dtype() else { unsupported!("elements of type {element} are not summed up") };
    let Shape { batch, groups, filters, channels } = shape;
    let (groups, filters, channels) = (*groups as i64, *filters as i64, *channels as i64);
    let result_extents = [&[batch.clone(), (groups * filters).into()][..], &windows.output].concat();
    // One loop goes over groups and filters where one of them is alone, and where vectors of filters stay in their group.
    let merged = groups == 1 || filters == 1 || filters % LANES == 0;
    let mut outer = vec![batch.clone()];
    if merged {
        outer.push((groups * filters).into());
    } else {
        outer.extend([groups.into(), filters.into()]);
    }
    let spatial = outer.len();
    outer.extend(windows.output.iter().cloned());
    let mut inner = vec![SymInt::from(channels)];
    inner.extend(windows.kernel());
    let inner = emitter.bounds(&inner)?;
    let loops = Loops::of(&emitter.order(result_extents.len()), spatial, outer.len());
    let wide = computing(dtype);
    let initial = (wide == dtype).then(|| number(dtype, 0.0));
    // A block whose indices are iterators is a reduction that rules tile; sums of iterators are left to the copies around it.
    let result = if merged {
        emitter.local(element, &result_extents, initial)?
    } else {
        emitter.ordered(element, &outer, initial, Order::of(&loops.outer))?
    };
    let split = if merged { None } else { Some(split_filters(emitter, weights, groups, filters)?) };
    let weights = split.as_ref().unwrap_or(weights);
    emitter.nest_in(&loops.outer, &outer, &mut |builder, outer| {
        let group = match (merged, filters) {
            (true, 1) | (false, _) => outer[1].clone(),
            (true, _) => outer[1].binary(BinaryOp::Div, Value::int(filters)),
        };
        let first_channel = (groups > 1).then(|| scaled(&group, channels));
        let filter = &outer[1..spatial];
        let target = outer.to_vec();
        let term = |builder: &KernelBuilder, inner: &[Value]| {
            let channel = match &first_channel {
                None => inner[0].clone(),
                Some(first) if channels == 1 => first.clone(),
                Some(first) => add(first, &inner[0]),
            };
            let mut places = vec![outer[0].clone(), channel];
            for (dimension, (window, tap)) in outer[spatial..].iter().zip(&inner[1..]).enumerate() {
                places.push(windows.padded_place(dimension, window, tap));
            }
            let weight = weights.at(builder, &[filter, inner].concat());
            multiply(&x.at(builder, &places).cast(wide), &weight.cast(wide))
        };
        if wide == dtype {
            loops.nest_inner(builder, &inner, &mut |builder, inner| {
                result.store(builder, &target, UpdateOp::Add, term(builder, inner), here!());
            });
        } else {
            let sum = builder.accumulator("sum", number(wide, 0.0), here!());
            loops.nest_inner(builder, &inner, &mut |builder, inner| {
                builder.update(sum, UpdateOp::Add, term(builder, inner), here!());
            });
            result.store(builder, &target, UpdateOp::Set, builder.read(sum).cast(dtype), here!());
        }
    })?;
    if merged {
        return Ok(result);
    }
    emitter.compute(element, &result_extents, &mut |builder, own| {
        let filter = Value::int(filters);
        let split = [BinaryOp::Div, BinaryOp::Rem].map(|op| own[1].binary(op, filter.clone()));
        result.at(builder, &[&own[..1], &split, &own[2..]].concat())
    })
}

/// The most elements of four bytes in a vector.
const LANES: i64 = 16;

/// Weights with a dimension for groups and one for the filters of each.
fn split_filters(
    emitter: &mut Emitter,
    weights: &Tensor,
    groups: i64,
    filters: i64,
) -> Result<Tensor, Unsupported> {
    let extents = [&[groups.into(), filters.into()][..], &weights.extents[1..]].concat();
    let split = emitter.scratch(weights.element, &extents)?;
    let loops: Vec<usize> = (0..extents.len()).collect();
    emitter.nest_in(&loops, &extents, &mut |builder, own| {
        let filter = add(&scaled(&own[0], filters), &own[1]);
        let weight = weights.at(builder, &[&[filter][..], &own[2..]].concat());
        split.store(builder, own, UpdateOp::Set, weight, here!());
    })?;
    Ok(split)
}

/// How the loops of a convolution are nested: as its tensors lie in memory.
pub(super) struct Loops {
    /// The loops over results: batch, filters in one or two loops, spatial dimensions; outermost first.
    pub(super) outer: Vec<usize>,
    channels_last: bool,
}

impl Loops {
    /// For results in an order, with loops over spatial dimensions from the loop `spatial` on.
    pub(super) fn of(order: &Order, spatial: usize, loops: usize) -> Self {
        let channels_last = order.innermost() == Some(1);
        let outer = if channels_last {
            std::iter::once(0).chain(spatial..loops).chain(1..spatial).collect()
        } else {
            (0..loops).collect()
        };
        Loops { outer, channels_last }
    }

    /// Loops over the channels and taps of one window.
    pub(super) fn nest_inner(
        &self,
        builder: &mut KernelBuilder,
        bounds: &[Bound],
        body: &mut dyn FnMut(&mut KernelBuilder, &[Value]),
    ) {
        let mut bounds = bounds.to_vec();
        if self.channels_last {
            bounds.rotate_left(1);
        }
        nest(builder, &bounds, &mut Vec::new(), &mut |builder, nested| {
            let mut indices = nested.to_vec();
            if self.channels_last {
                indices.rotate_right(1);
            }
            body(builder, &indices);
        });
    }
}

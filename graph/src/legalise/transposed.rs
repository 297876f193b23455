//! Transposed convolutions, by the elements of the result: each gathers the products that reach it.
//!
//! Along a dimension with stride `s`, an element at place `p` of the uncut result gets products of the taps `p mod s + s · t`
//! with the elements at places `p div s − t`: no product that a loop forms falls between two elements.

use tilewright_core::build::{UpdateOp, Value};
use tilewright_core::expr::BinaryOp;

use crate::legalise::convolution::Loops;
use crate::legalise::emitter::{Emitter, Tensor, here};
use crate::legalise::normalisation::per_channel;
use crate::legalise::operands::Operands;
use crate::legalise::pointwise::{broadcast, inside, moved, scaled};
use crate::legalise::scalar::{add, both, less, multiply, number, subtract};
use crate::legalise::{Unsupported, unsupported};
use crate::operator::TransposedGeometry;
use crate::symbolic::SymInt;
use crate::tensor::ElementType;

pub(crate) fn conv_transpose(
    emitter: &mut Emitter,
    operands: &Operands<'_>,
) -> Result<Vec<Tensor>, Unsupported> {
    let (x, weights) = (operands.tensor(emitter, 0)?, operands.tensor(emitter, 1)?);
    if x.rank() < 2
        || x.rank() != weights.rank()
        || x.element != ElementType::F32
        || x.element != weights.element
    {
        unsupported!("only 32-bit floats with batch and channels have a kernel form");
    }
    let fixed = emitter.sizes(&weights.extents)?;
    let groups = usize::try_from(operands.attributes().int_or_default("group")).unwrap_or(0);
    let channels = fixed[0];
    if groups == 0 || channels % groups != 0 || !x.extents[1].is(channels as i64) {
        unsupported!("{groups} groups do not fit the channels");
    }
    let input = emitter.sizes(&x.extents[2..])?;
    let geometry = TransposedGeometry::of(&operands.attributes(), &input, &fixed[2..])?;
    if geometry.dilations().iter().any(|&dilation| dilation != 1) {
        unsupported!("dilated transposed convolutions have no kernel form");
    }
    let output = output_extents(emitter, operands, &x.extents[2..], &geometry)?;
    let parts =
        Parts { groups: groups as i64, channels: (channels / groups) as i64, filters: fixed[1] as i64 };
    let sums = gather(emitter, &x, &weights, &geometry, &fixed[2..], &output, &parts)?;
    let Some(bias) = operands.optional(emitter, 2)? else { return Ok(vec![sums]) };
    let bias = per_channel(emitter, bias, x.rank())?;
    let element = x.element;
    Ok(vec![broadcast(emitter, &[sums, bias], element, &|values| add(&values[0], &values[1]))?])
}

/// The spatial extents of the result.
fn output_extents(
    emitter: &Emitter,
    operands: &Operands<'_>,
    input: &[SymInt],
    geometry: &TransposedGeometry,
) -> Result<Vec<SymInt>, Unsupported> {
    let mut extents = Vec::with_capacity(input.len());
    for (dimension, extent) in input.iter().enumerate() {
        let present = geometry.output()[dimension] as i64;
        if extent.as_constant().is_some() {
            extents.push(present.into());
            continue;
        }
        if operands.text("auto_pad") != "NOTSET" || operands.ints("output_shape").is_some() {
            unsupported!("the padding depends on the extent");
        }
        let stride = geometry.strides()[dimension] as i64;
        let difference = present - emitter.size(extent)? * stride;
        extents.push(&extent.scale(stride) + &difference.into());
    }
    Ok(extents)
}

struct Parts {
    groups: i64,
    /// Input channels of one group.
    channels: i64,
    /// Output channels of one group.
    filters: i64,
}

fn gather(
    emitter: &mut Emitter,
    x: &Tensor,
    weights: &Tensor,
    geometry: &TransposedGeometry,
    kernel: &[usize],
    output: &[SymInt],
    parts: &Parts,
) -> Result<Tensor, Unsupported> {
    let Parts { groups, channels, filters } = *parts;
    let merged = groups == 1 || filters == 1;
    let extents = [&[x.extents[0].clone(), (groups * filters).into()][..], output].concat();
    let mut outer = vec![x.extents[0].clone()];
    if merged {
        outer.push((groups * filters).into());
    } else {
        outer.extend([groups.into(), filters.into()]);
    }
    let spatial = outer.len();
    outer.extend(output.iter().cloned());
    let strides: Vec<i64> = geometry.strides().iter().map(|&stride| stride as i64).collect();
    let mut inner = vec![SymInt::from(channels)];
    inner.extend(
        kernel.iter().zip(&strides).map(|(&taps, &stride)| SymInt::from((taps as i64 + stride - 1) / stride)),
    );
    let inner = emitter.bounds(&inner)?;
    let ends = emitter.values(&x.extents[2..])?;
    let result = emitter.local(x.element, &extents, Some(number(x.dtype, 0.0)))?;
    let loops = Loops::of(&result.order, spatial, outer.len());
    emitter.nest_in(&loops.outer, &outer, &mut |builder, outer| {
        let (group, filter) = match (merged, groups) {
            (true, 1) => (Value::int(0), outer[1].clone()),
            (true, _) => (outer[1].clone(), Value::int(0)),
            (false, _) => (outer[1].clone(), outer[2].clone()),
        };
        let channel = if merged { outer[1].clone() } else { add(&scaled(&group, filters), &filter) };
        let target = [&[outer[0].clone(), channel][..], &outer[spatial..]].concat();
        loops.nest_inner(builder, &inner, &mut |builder, inner| {
            let source =
                if groups == 1 { inner[0].clone() } else { add(&scaled(&group, channels), &inner[0]) };
            let mut places = vec![outer[0].clone(), source.clone()];
            let mut taps = vec![source, filter.clone()];
            let mut condition: Option<Value> = None;
            for (dimension, (place, step)) in outer[spatial..].iter().zip(&inner[1..]).enumerate() {
                let (stride, extent) = (strides[dimension], kernel[dimension] as i64);
                let uncut = moved(place, -geometry.before()[dimension]);
                let (first, phase) = if stride == 1 {
                    (uncut, Value::int(0))
                } else {
                    (
                        uncut.binary(BinaryOp::Div, Value::int(stride)),
                        uncut.binary(BinaryOp::Rem, Value::int(stride)),
                    )
                };
                let tap = add(&phase, &scaled(step, stride));
                let source = subtract(&first, step);
                let mut conditions = vec![inside(&source, &ends[dimension])];
                if extent % stride != 0 {
                    conditions.push(less(&tap, &Value::int(extent)));
                }
                for next in conditions {
                    condition = Some(condition.map_or(next.clone(), |condition| both(&condition, &next)));
                }
                places.push(source);
                taps.push(tap);
            }
            let product = multiply(&x.at(builder, &places), &weights.at(builder, &taps));
            let store = |builder: &mut tilewright_core::build::KernelBuilder| {
                result.store(builder, &target, UpdateOp::Add, product, here!());
            };
            match condition {
                None => store(builder),
                Some(condition) => builder.if_else(condition, here!(), store, |_| {}),
            }
        });
    })?;
    Ok(result)
}

//! The terms that zero points add to the sums of a convolution. The convolution subtracts them.

use tilewright_core::build::{UpdateOp, Value};
use tilewright_core::dtype::DType;

use crate::legalise::Unsupported;
use crate::legalise::convolution::Shape;
use crate::legalise::emitter::{Emitter, Tensor, here, nest};
use crate::legalise::pointwise::{inside, scaled};
use crate::legalise::quantise::parameter::Parameter;
use crate::legalise::quantise::product::wide;
use crate::legalise::scalar::{add, both, multiply, number, subtract};
use crate::legalise::window::Windows;
use crate::operator::Window;
use crate::symbolic::SymInt;
use crate::tensor::ElementType;

/// The value of the elements around the input.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Padding {
    /// The zero point, whose products are formed and subtracted afterwards.
    Multiplied,
    /// Zero, whose products are left out. The term to subtract from a sum then depends on its place, because only weights that meet the input count.
    LeftOut,
}

impl Padding {
    /// Leaves out products where most of them are of padding, for the present values of the dimensions.
    pub(super) fn of(windows: &Windows) -> Self {
        let Window { input, output, kernel, strides, dilations, before, .. } = &windows.fixed;
        let share = (0..input.len()).map(|dimension| {
            let (extent, number) = (input[dimension] as i64, output[dimension] as i64);
            let stride = strides[dimension] as i64;
            // The windows in which a tap meets the input.
            let meeting = |tap: usize| {
                let start = (tap * dilations[dimension]) as i64 - before[dimension];
                let first = (stride - 1 - start).div_euclid(stride).max(0);
                let end = (extent - 1 - start).div_euclid(stride) + 1;
                (end.min(number) - first).max(0)
            };
            let met: i64 = (0..kernel[dimension]).map(meeting).sum();
            met as f64 / (number * kernel[dimension] as i64).max(1) as f64
        });
        if share.product::<f64>() < 0.5 { Padding::LeftOut } else { Padding::Multiplied }
    }
}

/// The sums of each filter's weights less their zero point, times a zero point that is known ahead of calls; for each place of the result the weights that
/// meet the input alone, where there are places: the windows and the spatial extents of the input.
pub(super) fn sum_filters(
    emitter: &mut Emitter,
    weights: &Tensor,
    zero_of_x: Option<&Parameter>,
    zero_of_weights: Option<&Parameter>,
    places: Option<(&Windows, &[SymInt])>,
) -> Result<Tensor, Unsupported> {
    let kept = if places.is_some() { &weights.extents[2..] } else { &[] };
    let outer = [&weights.extents[..1], kept].concat();
    let bounds = emitter.bounds(&weights.extents[1..weights.rank() - kept.len()])?;
    let zero = || Some(number(DType::I32, 0.0));
    let sums = emitter.local(ElementType::I32, &outer, zero())?;
    emitter.nest(&outer, &mut |builder, own| {
        nest(builder, &bounds, &mut Vec::new(), &mut |builder, inner| {
            let mut term = wide(&weights.at(builder, &[&own[..1], inner, &own[1..]].concat()));
            if let Some(zero) = zero_of_weights {
                term = subtract(&term, &wide(&zero.at(builder, &own[..1])));
            }
            if let Some(zero) = zero_of_x {
                term = multiply(&wide(&zero.at(builder, &[])), &term);
            }
            sums.store(builder, own, UpdateOp::Add, term, here!());
        });
    })?;
    let Some((windows, input)) = places else { return Ok(sums) };
    let extents = [&[1.into(), weights.extents[0].clone()][..], &windows.output].concat();
    let (taps, ends) = (emitter.bounds(kept)?, emitter.values(input)?);
    let by_place = emitter.local(ElementType::I32, &extents, zero())?;
    emitter.nest(&extents, &mut |builder, indices| {
        nest(builder, &taps, &mut Vec::new(), &mut |builder, taps| {
            let place =
                |dimension: usize| windows.place(dimension, &indices[2 + dimension], &taps[dimension]);
            let meets = (0..taps.len()).map(|dimension| inside(&place(dimension), &ends[dimension]));
            let sum = sums.at(builder, &[&indices[1..2], taps].concat());
            let term = match meets.reduce(|all, one| both(&all, &one)) {
                Some(meets) => meets.select(sum, number(DType::I32, 0.0)),
                None => sum,
            };
            by_place.store(builder, indices, UpdateOp::Add, term, here!());
        });
    })?;
    Ok(by_place)
}

/// The sum of each window, over all channels of a group: channels first, so that overlapping windows share these sums.
pub(super) fn sum_windows(
    emitter: &mut Emitter,
    x: &Tensor,
    windows: &Windows,
    shape: &Shape,
) -> Result<Tensor, Unsupported> {
    let channels = shape.channels as i64;
    let groups: SymInt = shape.groups.into();
    let zero = || Some(number(DType::I32, 0.0));
    let extents = [&[x.extents[0].clone(), groups.clone()][..], &x.extents[2..]].concat();
    let bounds = emitter.bounds(&[channels.into()])?;
    let places = emitter.local(ElementType::I32, &extents, zero())?;
    emitter.nest(&extents, &mut |builder, indices| {
        nest(builder, &bounds, &mut Vec::new(), &mut |builder, inner| {
            let channel = add(&scaled(&indices[1], channels), &inner[0]);
            let own = [&[indices[0].clone(), channel][..], &indices[2..]].concat();
            places.store(builder, indices, UpdateOp::Add, wide(&x.at(builder, &own)), here!());
        });
    })?;
    let extents = [&[x.extents[0].clone(), groups][..], &windows.output].concat();
    let bounds = emitter.bounds(&windows.kernel())?;
    let sums = emitter.local(ElementType::I32, &extents, zero())?;
    emitter.nest(&extents, &mut |builder, indices| {
        nest(builder, &bounds, &mut Vec::new(), &mut |builder, taps| {
            let place = |(dimension, (window, tap))| windows.padded_place(dimension, window, tap);
            let spatial = indices[2..].iter().zip(taps).enumerate().map(place);
            let own: Vec<Value> = indices[..2].iter().cloned().chain(spatial).collect();
            sums.store(builder, indices, UpdateOp::Add, places.at(builder, &own), here!());
        });
    })?;
    Ok(sums)
}

//! Convolutions of integers.

use tilewright_core::build::Value;
use tilewright_core::dtype::DType;
use tilewright_core::expr::BinaryOp;

use crate::legalise::convolution::{Shape, multiply_windows, pad, with_fewer_taps};
use crate::legalise::emitter::{Emitter, Tensor};
use crate::legalise::operands::Operands;
use crate::legalise::quantise::convert::{Rescale, require_narrow_sums, rescale, scales_of_sums};
use crate::legalise::quantise::parameter::Parameter;
use crate::legalise::quantise::product::{require_bytes, wide};
use crate::legalise::quantise::zero_terms::{Padding, sum_filters, sum_windows};
use crate::legalise::scalar::{divide, multiply, number, subtract};
use crate::legalise::window::Windows;
use crate::legalise::{Unsupported, unsupported};
use crate::symbolic::SymInt;
use crate::tensor::ElementType;

type Emitted = Result<Vec<Tensor>, Unsupported>;

/// Sums of products of windows of integers with filters of integers, each less its zero point. Around the input lie elements
/// that are equal to its zero point.
pub(crate) fn conv_integer(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let (x, weights) = (operands.tensor(emitter, 0)?, operands.tensor(emitter, 1)?);
    Ok(vec![centred_windows(emitter, operands, [x, weights], [2, 3])?])
}

/// Inputs: x, its scale and zero point, weights, their scale and zero point, scale and zero point of the result, bias.
pub(crate) fn qlinear_conv(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let (x, weights) = (operands.tensor(emitter, 0)?, operands.tensor(emitter, 3)?);
    let products = emitter.sizes(&weights.extents)?.iter().skip(1).product::<usize>();
    require_narrow_sums(i64::try_from(products).ok())?;
    let relative = scales_of_sums(emitter, operands, [1, 4, 6])?;
    let sums = centred_windows(emitter, operands, [x, weights], [2, 5])?;
    let how = Rescale { scales: [(1, 1), (4, 1), (6, 1)], relative, zero: 7, bias: Some(8) };
    rescale(emitter, operands, &sums, how)
}

/// Sums over windows, each factor less its zero point, which are inputs at two places.
fn centred_windows(
    emitter: &mut Emitter,
    operands: &Operands<'_>,
    [x, weights]: [Tensor; 2],
    zeros: [usize; 2],
) -> Result<Tensor, Unsupported> {
    require_bytes([&x, &weights])?;
    if x.rank() < 2 || x.rank() != weights.rank() {
        unsupported!("only batch, channels and as many spatial dimensions have a kernel form");
    }
    if weights.extents.iter().any(|extent| extent.as_constant().is_none()) {
        unsupported!("the extents of weights must not depend on the call");
    }
    let fixed = emitter.sizes(&weights.extents)?;
    let shape = Shape::of(operands, &x, &fixed)?;
    let mut windows = Windows::of(emitter, operands, &x.extents[2..], &fixed[2..])?;
    // A tap of padding alone meets zero points, which add nothing.
    let weights = with_fewer_taps(emitter, weights, &mut windows, &x.extents[2..])?;
    let mut zero = |place: usize, extents: &[SymInt], axis: i64| -> Result<Option<Parameter>, Unsupported> {
        if operands.is_zero(place) {
            return Ok(None);
        }
        let zero = operands.optional(emitter, place)?;
        zero.map(|zero| Parameter::new(zero, extents, axis, 0)).transpose()
    };
    let (zero_of_x, zero_of_weights) = (zero(zeros[0], &x.extents, 1)?, zero(zeros[1], &weights.extents, 0)?);
    if zero_of_x.as_ref().is_some_and(|zero| !zero.is_one()) {
        unsupported!("an input has one zero point");
    }
    if sums_are_exact_in_floats(&shape, &weights, zero_of_weights.is_some()) {
        let zeros = [zero_of_x.as_ref(), zero_of_weights.as_ref()];
        return sum_in_floats(emitter, [&x, &weights], zeros, &windows, &shape);
    }
    let padding = Padding::of(&windows);
    let padded = if windows.has_padding() {
        let fill = match &zero_of_x {
            Some(zero) if padding == Padding::Multiplied => zero.at(&emitter.builder, &[]),
            _ => number(x.dtype, 0.0),
        };
        pad(emitter, &x, &windows, &fill)?
    } else {
        x.clone()
    };
    // Ahead of the products, so that what follows these can be computed tile by tile.
    let folds = zero_of_x.as_ref().filter(|_| operands.is_known(zeros[0]));
    let of_filters = match &zero_of_x {
        None => None,
        Some(_) => {
            let place = (padding == Padding::LeftOut).then_some((&windows, &x.extents[2..]));
            Some(sum_filters(emitter, &weights, folds, zero_of_weights.as_ref(), place)?)
        }
    };
    let of_windows =
        zero_of_weights.as_ref().map(|_| sum_windows(emitter, &padded, &windows, &shape)).transpose()?;
    let sums = multiply_windows(emitter, [&padded, &weights], &windows, &shape, ElementType::I32)?;
    if zero_of_x.is_none() && zero_of_weights.is_none() {
        return Ok(sums);
    }
    let filters = shape.filters as i64;
    let extents = sums.extents.clone();
    emitter.compute(ElementType::I32, &extents, &mut |builder, indices| {
        let filter = std::slice::from_ref(&indices[1]);
        let mut sum = sums.at(builder, indices);
        if let (Some(zero), Some(sums)) = (&zero_of_weights, &of_windows) {
            let group = match shape.groups {
                1 => Value::int(0),
                _ => divide(&indices[1], &Value::int(filters)),
            };
            let places = [&[indices[0].clone(), group][..], &indices[2..]].concat();
            let zero = wide(&zero.at(builder, filter));
            sum = subtract(&sum, &multiply(&zero, &sums.at(builder, &places)));
        }
        if let (Some(zero), Some(sums)) = (&zero_of_x, &of_filters) {
            let place = [&[Value::int(0)], &indices[1..]].concat();
            let term = sums.at(builder, if padding == Padding::LeftOut { &place } else { filter });
            let term =
                if folds.is_some() { term } else { multiply(&wide(&zero.at(builder, indices)), &term) };
            sum = subtract(&sum, &term);
        }
        sum
    })
}

/// Up to this magnitude, `f32` holds every integer.
const EXACT_IN_FLOATS: i64 = 1 << 24;

/// Whether each channel has its own filters, and `f32` holds all sums. Instructions for products of bytes add those of neighbours, which belong to other channels
/// here; without such an instruction, a product of floats takes a third of the steps of one of bytes, and its padding is zero.
fn sums_are_exact_in_floats(shape: &Shape, weights: &Tensor, weights_have_zero: bool) -> bool {
    let taps = weights.extents[1..].iter().filter_map(SymInt::as_constant).product::<i64>();
    let greatest = if weights_have_zero || weights.dtype == DType::U8 { 255 } else { 128 };
    shape.channels == 1 && taps.saturating_mul(255 * greatest) <= EXACT_IN_FLOATS
}

/// Sums of products of windows with filters, each less its zero point, formed in `f32`, which holds them.
fn sum_in_floats(
    emitter: &mut Emitter,
    [x, weights]: [&Tensor; 2],
    [zero_of_x, zero_of_weights]: [Option<&Parameter>; 2],
    windows: &Windows,
    shape: &Shape,
) -> Result<Tensor, Unsupported> {
    let x = centre(emitter, x, zero_of_x)?;
    let weights = centre(emitter, weights, zero_of_weights)?;
    let x = if windows.has_padding() { pad(emitter, &x, windows, &number(DType::F32, 0.0))? } else { x };
    let sums = multiply_windows(emitter, [&x, &weights], windows, shape, ElementType::F32)?;
    let extents = sums.extents.clone();
    // The bounds, which no sum exceeds, spare what a conversion does for numbers that do not fit.
    let [least, greatest] = [-EXACT_IN_FLOATS, EXACT_IN_FLOATS].map(|bound| number(DType::F32, bound as f64));
    emitter.compute(ElementType::I32, &extents, &mut |builder, indices| {
        let sum = sums.at(builder, indices).binary(BinaryOp::Max, least.clone());
        wide(&sum.binary(BinaryOp::Min, greatest.clone()))
    })
}

/// Integers less their zero point, as floats.
fn centre(emitter: &mut Emitter, tensor: &Tensor, zero: Option<&Parameter>) -> Result<Tensor, Unsupported> {
    emitter.compute(ElementType::F32, &tensor.extents, &mut |builder, indices| {
        let mut integer = wide(&tensor.at(builder, indices));
        if let Some(zero) = zero {
            integer = subtract(&integer, &wide(&zero.at(builder, indices)));
        }
        integer.cast(DType::F32)
    })
}

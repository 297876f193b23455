//! From numbers to integers and back.

use tilewright_core::build::{KernelBuilder, Value};
use tilewright_core::dtype::DType;
use tilewright_core::expr::{BinaryOp, UnaryOp};

use crate::legalise::emitter::{Emitter, Tensor};
use crate::legalise::operands::Operands;
use crate::legalise::quantise::parameter::Parameter;
use crate::legalise::scalar::{add, clamp, divide, larger, less, multiply, number, smaller, subtract};
use crate::legalise::{Unsupported, unsupported};
use crate::operator::Rounding;
use crate::tensor::ElementType;

type Emitted = Result<Vec<Tensor>, Unsupported>;

/// The type of a call's result: that of its zero point, or the one that an attribute names.
fn target(operands: &Operands<'_>, zero: Option<&Parameter>) -> Result<(ElementType, DType), Unsupported> {
    let named = operands.attributes().element("output_dtype");
    let element = zero.map(|zero| zero.tensor.element).or(named).unwrap_or(ElementType::U8);
    match element.dtype() {
        Some(dtype) if element.is_integer() => Ok((element, dtype)),
        _ => unsupported!("numbers are not quantised to elements of type {element}"),
    }
}

/// The nearest integer, ties to even, moved by a zero point and brought into the range of a type. A conversion saturates, so
/// that the order of the two does not matter: beyond 2²⁴, where the sum is not exact, all types of fewer bits end.
pub(super) fn rounded(number: &Value, zero: Option<Value>, compute: DType, to: DType) -> Value {
    let nearest = number.unary(UnaryOp::RoundTiesEven);
    match zero {
        None => nearest.cast(to),
        Some(zero) => add(&nearest, &zero.cast(compute)).cast(to),
    }
}

/// Whether integers of a type lie within the range in which `f32` adds exactly.
fn require_narrow(element: ElementType, dtype: DType) -> Result<(), Unsupported> {
    if dtype.bits() > 16 {
        unsupported!("numbers are not quantised to elements of type {element}");
    }
    Ok(())
}

/// The type in which the quotient of a number and a scale is formed.
fn quotient_type(dtype: DType) -> DType {
    if dtype == DType::F64 { DType::F64 } else { DType::F32 }
}

/// Integers from numbers.
pub(crate) fn quantize(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    if !x.dtype.is_float() {
        unsupported!("elements of type {} are no floats", x.element);
    }
    let scale = Parameter::scale(emitter, operands, &x.extents)?;
    let zero = Parameter::of(emitter, operands, 2, &x.extents)?;
    let (element, to) = target(operands, zero.as_ref())?;
    require_narrow(element, to)?;
    let has_zero = zero.is_some() && !operands.is_zero(2);
    let compute = quotient_type(x.dtype);
    let result = emitter.compute(element, &x.extents, &mut |builder, indices| {
        let scale = scale.at(builder, indices).cast(compute);
        let quotient = divide(&x.at(builder, indices).cast(compute), &scale);
        let zero = zero.as_ref().filter(|_| has_zero).map(|zero| zero.at(builder, indices));
        rounded(&quotient, zero, compute, to)
    })?;
    Ok(vec![result])
}

/// Numbers from integers.
pub(crate) fn dequantize(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    if !x.element.is_integer() || x.dtype.bits() > 32 {
        unsupported!("elements of type {} do not stand for numbers", x.element);
    }
    let scale = Parameter::scale(emitter, operands, &x.extents)?;
    let zero = Parameter::of(emitter, operands, 2, &x.extents)?.filter(|_| !operands.is_zero(2));
    let element = operands.attributes().element("output_dtype").unwrap_or(scale.tensor.element);
    let Some(dtype) = element.dtype().filter(|dtype| dtype.is_float()) else {
        unsupported!("elements of type {element} are no floats")
    };
    let compute = quotient_type(scale.tensor.dtype);
    // A difference of integers of 32 bits may need 33.
    let difference = if x.dtype.bits() == 32 { DType::I64 } else { DType::I32 };
    let result = emitter.compute(element, &x.extents, &mut |builder, indices| {
        let mut integer = x.at(builder, indices);
        if let Some(zero) = &zero {
            integer = subtract(&integer.cast(difference), &zero.at(builder, indices).cast(difference));
        }
        let scale = scale.at(builder, indices).cast(compute);
        multiply(&integer.cast(compute), &scale).cast(dtype)
    })?;
    Ok(vec![result])
}

/// Sums of products as integers of fewer bits: scaled in `f32`, rounded to even, moved by the zero point.
pub(crate) fn requantize(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    if !x.element.is_integer() || x.dtype.bits() > 32 {
        unsupported!("elements of type {} are no sums of products", x.element);
    }
    if let Some(rounding) = Rounding::of(operands.text("rounding"))? {
        return requantize_exactly(emitter, operands, &x, rounding);
    }
    let scale = Parameter::scale(emitter, operands, &x.extents)?;
    let zero = Parameter::of(emitter, operands, 2, &x.extents)?;
    let (element, to) = target(operands, zero.as_ref())?;
    require_narrow(element, to)?;
    let has_zero = zero.is_some() && !operands.is_zero(2);
    let result = emitter.compute(element, &x.extents, &mut |builder, indices| {
        let number = x.at(builder, indices).cast(DType::F32);
        let scaled = multiply(&number, &scale.at(builder, indices).cast(DType::F32));
        let zero = zero.as_ref().filter(|_| has_zero).map(|zero| zero.at(builder, indices));
        rounded(&scaled, zero, DType::F32, to)
    })?;
    Ok(vec![result])
}

/// Sums scaled by integers alone: each scale is an integer over a power of two, so that a product has 58 bits at most.
fn requantize_exactly(
    emitter: &mut Emitter,
    operands: &Operands<'_>,
    x: &Tensor,
    rounding: Rounding,
) -> Emitted {
    let scale = operands.tensor(emitter, 1)?;
    if scale.dtype != DType::F32 {
        unsupported!("scales of elements {} are evaluated", scale.element);
    }
    let zero = Parameter::of(emitter, operands, 2, &x.extents)?;
    let (element, to) = target(operands, zero.as_ref())?;
    require_narrow(element, to)?;
    let axis = operands.attributes().int_or_default("axis");
    let [multiplier, power] = [0, 1].map(|part: usize| {
        let parts = emitter.compute(ElementType::I64, &scale.extents, &mut |builder, indices| {
            let (multiplier, power) = parts_of_scale(&scale.at(builder, indices));
            if part == 0 { multiplier } else { power }
        })?;
        Parameter::new(parts, &x.extents, axis, 0)
    });
    let (multiplier, power) = (multiplier?, power?);
    let bits = to.bits() - usize::from(!element.is_unsigned());
    let highest = f64::from((1u32 << bits) - 1);
    let lowest = if element.is_unsigned() { 0.0 } else { -highest - 1.0 };
    let result = emitter.compute(element, &x.extents, &mut |builder, indices| {
        let power = power.at(builder, indices);
        let product = multiply(&x.at(builder, indices).cast(DType::I64), &multiplier.at(builder, indices));
        let mut scaled = shifted(&product, &power, rounding);
        if let Some(zero) = &zero {
            scaled = add(&scaled, &zero.at(builder, indices).cast(DType::I64));
        }
        clamp(&scaled, lowest, highest, DType::I64).cast(to)
    })?;
    Ok(vec![result])
}

/// A scale as an integer of up to 26 bits and the power of two that it is divided by. The logarithm may be a unit too large where it is near the
/// next integer, so that the power leaves room for one more bit; a scale of 24 bits times it is an integer either way. Scales beyond 2²² bring every
/// sum but zero out of the range of 16 bits, as 2²² does; with a power of 62, products vanish.
fn parts_of_scale(scale: &Value) -> (Value, Value) {
    let whole = |value: i64| Value::typed_int(DType::I64, value);
    let scale = smaller(&scale.cast(DType::F64), &number(DType::F64, 4_194_304.0), DType::F64);
    let exponent = scale.unary(UnaryOp::Log2).unary(UnaryOp::Floor).cast(DType::I64);
    let power = subtract(&whole(24), &exponent);
    let power = smaller(&larger(&power, &whole(1), DType::I64), &whole(62), DType::I64);
    let factor = whole(1).binary(BinaryOp::Shl, power.clone()).cast(DType::F64);
    (multiply(&scale, &factor).cast(DType::I64), power)
}

/// A product divided by a power of two, rounded.
fn shifted(product: &Value, power: &Value, rounding: Rounding) -> Value {
    let whole = |value: i64| Value::typed_int(DType::I64, value);
    let half = whole(1).binary(BinaryOp::Shl, subtract(power, &whole(1)));
    let moved = add(product, &half);
    let moved = match rounding {
        Rounding::Upward => moved,
        Rounding::Away => subtract(&moved, &less(product, &whole(0)).select(whole(1), whole(0))),
        Rounding::Even => {
            let last = product.binary(BinaryOp::Shr, power.clone()).binary(BinaryOp::And, whole(1));
            add(&subtract(&moved, &whole(1)), &last)
        }
    };
    moved.binary(BinaryOp::Shr, power.clone())
}

/// How sums become integers of fewer bits.
pub(super) struct Rescale {
    /// The inputs that are the scales of both factors and of the result, each with the dimension that its numbers belong to.
    pub(super) scales: [(usize, i64); 3],
    /// The scales of the sums, if they are formed ahead of them ([`scales_of_sums`]).
    pub(super) relative: Option<Tensor>,
    /// The input that is the zero point of the result.
    pub(super) zero: usize,
    /// The input that is added to the sums, by output channel.
    pub(super) bias: Option<usize>,
}

/// The most products of two bytes, less their zero points, whose sum fits 32 bits whatever they are, with as much room for a bias.
const MOST_PRODUCTS: i64 = (1 << 30) / (255 * 255);

/// Requires sums that 32 bits hold.
pub(super) fn require_narrow_sums(products: Option<i64>) -> Result<(), Unsupported> {
    match products {
        Some(products) if products <= MOST_PRODUCTS => Ok(()),
        Some(products) => unsupported!("sums of {products} products may not fit 32 bits"),
        None => unsupported!("whether sums of products fit 32 bits depends on the call"),
    }
}

/// The scales of both factors relative to that of the result, which are inputs at these places, one for each scale of the right factor. They are formed once
/// where they are constant. `None` where the other scales are several numbers.
pub(super) fn scales_of_sums(
    emitter: &mut Emitter,
    operands: &Operands<'_>,
    places: [usize; 3],
) -> Result<Option<Tensor>, Unsupported> {
    let [left, right, result] = places.map(|place| operands.tensor(emitter, place));
    let (left, right, result) = (left?, right?, result?);
    let is_one = |tensor: &Tensor| tensor.extents.iter().all(|extent| extent.is(1));
    if !is_one(&left) || !is_one(&result) || is_one(&right) {
        return Ok(None);
    }
    let first = |builder: &KernelBuilder, tensor: &Tensor| {
        tensor.at(builder, &vec![Value::int(0); tensor.rank()]).cast(DType::F32)
    };
    let extents = right.extents.clone();
    let relative = emitter.compute(ElementType::F32, &extents, &mut |builder, indices| {
        let right = right.at(builder, indices).cast(DType::F32);
        divide(&multiply(&first(builder, &left), &right), &first(builder, &result))
    })?;
    Ok(Some(relative))
}

/// Sums of products, scaled by the factors' scales relative to that of the result. The relative scale is formed in `f32`, as ONNX Runtime does.
pub(super) fn rescale(
    emitter: &mut Emitter,
    operands: &Operands<'_>,
    sums: &Tensor,
    how: Rescale,
) -> Emitted {
    let extents = sums.extents.clone();
    let bias = match how.bias {
        None => None,
        Some(place) => operands.optional(emitter, place)?.map(|bias| (place, bias)),
    };
    // A bias beyond the room that is left for it is added in 64 bits.
    let sum_type = match &bias {
        Some((place, _)) if !operands.is_at_most(*place, 1 << 30) => DType::I64,
        _ => DType::I32,
    };
    let bias = bias.map(|(_, bias)| Parameter::new(bias, &extents, 1, 0)).transpose()?;
    let mut parameter = |place: usize, dimension: i64| -> Result<Parameter, Unsupported> {
        Parameter::new(operands.tensor(emitter, place)?, &extents, dimension, 0)
    };
    let [left, right, result] = how.scales;
    let scales = [parameter(left.0, left.1)?, parameter(right.0, right.1)?, parameter(result.0, result.1)?];
    let zero = parameter(how.zero, result.1)?;
    let relative = how.relative.map(|relative| Parameter::new(relative, &extents, right.1, 0)).transpose()?;
    if scales.iter().any(|scale| scale.tensor.dtype == DType::F64) {
        unsupported!("scales of 64 bits are evaluated");
    }
    let (element, to) = target(operands, Some(&zero))?;
    require_narrow(element, to)?;
    let has_zero = !operands.is_zero(how.zero);
    let rescaled = emitter.compute(element, &extents, &mut |builder, indices| {
        let mut sum = sums.at(builder, indices);
        if let Some(bias) = &bias {
            sum = add(&sum.cast(sum_type), &bias.at(builder, indices).cast(sum_type));
        }
        let scale = match &relative {
            Some(relative) => relative.at(builder, indices),
            None => {
                let [left, right, result] =
                    [0, 1, 2].map(|place: usize| scales[place].at(builder, indices).cast(DType::F32));
                divide(&multiply(&left, &right), &result)
            }
        };
        let zero = has_zero.then(|| zero.at(builder, indices));
        rounded(&multiply(&sum.cast(DType::F32), &scale), zero, DType::F32, to)
    })?;
    Ok(vec![rescaled])
}

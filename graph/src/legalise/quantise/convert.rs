//! From numbers to integers and back.

use tilewright_core::build::Value;
use tilewright_core::dtype::DType;
use tilewright_core::expr::UnaryOp;

use crate::legalise::emitter::{Emitter, Tensor};
use crate::legalise::operands::Operands;
use crate::legalise::quantise::parameter::Parameter;
use crate::legalise::scalar::{add, divide, multiply, subtract};
use crate::legalise::{Unsupported, unsupported};
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
fn rounded(number: &Value, zero: Option<Value>, compute: DType, to: DType) -> Value {
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

//! Numbers as bytes whose scale and zero point follow from the numbers.

use tilewright_core::build::Value;
use tilewright_core::dtype::DType;
use tilewright_core::expr::UnaryOp;

use crate::legalise::emitter::{Emitter, Tensor};
use crate::legalise::operands::Operands;
use crate::legalise::quantise::convert::rounded;
use crate::legalise::reduction::{Reduction, over};
use crate::legalise::scalar::{clamp, divide, larger, less, number, smaller, subtract};
use crate::legalise::{Unsupported, unsupported};
use crate::tensor::ElementType;

/// Unsigned bytes, their scale and their zero point. The range of the numbers is widened to hold zero, and a tensor of zeros has the scale 1.
pub(crate) fn dynamic_quantize(
    emitter: &mut Emitter,
    operands: &Operands<'_>,
) -> Result<Vec<Tensor>, Unsupported> {
    let x = operands.tensor(emitter, 0)?;
    quantise_by_range(emitter, &x).map(Vec::from)
}

/// The bytes of a tensor, their scale and their zero point.
pub(in crate::legalise) fn quantise_by_range(
    emitter: &mut Emitter,
    x: &Tensor,
) -> Result<[Tensor; 3], Unsupported> {
    if x.dtype != DType::F32 {
        unsupported!("elements of type {} are evaluated", x.element);
    }
    let all = vec![true; x.rank()];
    let low = over(emitter, x, &all, false, Reduction::Smallest)?;
    let high = over(emitter, x, &all, false, Reduction::Largest)?;
    let zero = || number(DType::F32, 0.0);
    let scale = emitter.compute(ElementType::F32, &[], &mut |builder, _| {
        let low = smaller(&low.at(builder, &[]), &zero(), DType::F32);
        let high = larger(&high.at(builder, &[]), &zero(), DType::F32);
        scale_of(&low, &high)
    })?;
    let moved = emitter.compute(ElementType::U8, &[], &mut |builder, _| {
        let low = smaller(&low.at(builder, &[]), &zero(), DType::F32);
        zero_point_of(&low, &scale.at(builder, &[]))
    })?;
    let extents = x.extents.clone();
    let bytes = emitter.compute(ElementType::U8, &extents, &mut |builder, indices| {
        byte_of(&x.at(builder, indices), &scale.at(builder, &[]), moved.at(builder, &[]))
    })?;
    Ok([bytes, scale, moved])
}

/// The scale of bytes for the numbers from `low`, at most zero, to `high`, at least zero.
pub(in crate::legalise) fn scale_of(low: &Value, high: &Value) -> Value {
    let step = divide(&subtract(high, low), &number(DType::F32, 255.0));
    less(low, high).select(step, number(DType::F32, 1.0))
}

/// The zero point of bytes with a scale, of which the smallest stands for `low`.
pub(in crate::legalise) fn zero_point_of(low: &Value, scale: &Value) -> Value {
    let moved = subtract(&number(DType::F32, 0.0), &divide(low, scale));
    clamp(&moved, 0.0, 255.0, DType::F32).unary(UnaryOp::RoundTiesEven).cast(DType::U8)
}

/// The byte that stands for a number.
pub(in crate::legalise) fn byte_of(number: &Value, scale: &Value, zero: Value) -> Value {
    rounded(&divide(number, scale), Some(zero), DType::F32, DType::U8)
}

//! Arithmetic and conversions of integers.

use tilewright_core::build::Value;
use tilewright_core::dtype::DType;
use tilewright_core::expr::BinaryOp;

use crate::legalise::emitter::{Emitter, Tensor};
use crate::legalise::operands::Operands;
use crate::legalise::pointwise::broadcast;
use crate::legalise::scalar::{add, both, computing, less, number};
use crate::legalise::{Unsupported, unsupported};
use crate::tensor::ElementType;

type Emitted = Result<Vec<Tensor>, Unsupported>;

/// Both operands, of one integer type, with a divisor whose elements are known and not zero: a division by zero is an error, which
/// kernels do not report.
fn operands_of_division(emitter: &mut Emitter, operands: &Operands<'_>) -> Result<Vec<Tensor>, Unsupported> {
    let (x, y) = (operands.tensor(emitter, 0)?, operands.tensor(emitter, 1)?);
    let divisors = operands.integers(1)?;
    if x.element != y.element || !x.element.is_integer() || divisors.contains(&0) {
        unsupported!(
            "integers of type {} are divided by {} of type {}",
            x.element,
            divisors.len(),
            y.element
        );
    }
    Ok(vec![x, y])
}

/// A quotient of integers, without its fraction.
pub(crate) fn divide(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let inputs = operands_of_division(emitter, operands)?;
    let element = inputs[0].element;
    let quotient = |values: &[Value]| values[0].binary(BinaryOp::Div, values[1].clone());
    Ok(vec![broadcast(emitter, &inputs, element, &quotient)?])
}

/// A remainder of integers, or of floats: of the dividend's sign with `fmod`, else of the divisor's.
pub(crate) fn modulo(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    let inputs = if x.dtype.is_float() {
        let y = operands.tensor(emitter, 1)?;
        if y.element != x.element {
            unsupported!("elements of types {} and {} meet", x.element, y.element);
        }
        vec![x, y]
    } else {
        operands_of_division(emitter, operands)?
    };
    let (element, dtype) = (inputs[0].element, inputs[0].dtype);
    let wide = computing(dtype);
    let keeps_dividend = operands.flag("fmod");
    let remainder = |values: &[Value]| {
        let (x, y) = (values[0].cast(wide), values[1].cast(wide));
        let remainder = x.binary(BinaryOp::Rem, y.clone());
        if keeps_dividend {
            return remainder.cast(dtype);
        }
        let zero = number(wide, 0.0);
        let differs = less(&remainder, &zero).binary(BinaryOp::Ne, less(&y, &zero));
        let other_sign = both(&remainder.binary(BinaryOp::Ne, zero), &differs);
        other_sign.select(add(&remainder, &y), remainder).cast(dtype)
    };
    Ok(vec![broadcast(emitter, &inputs, element, &remainder)?])
}

/// Bits moved to the left or to the right; those that leave are lost.
pub(crate) fn shift(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let (x, by) = (operands.tensor(emitter, 0)?, operands.tensor(emitter, 1)?);
    if x.element != by.element || !x.element.is_unsigned() {
        unsupported!("elements of types {} and {} are shifted", x.element, by.element);
    }
    let op = match operands.text("direction") {
        "LEFT" => BinaryOp::Shl,
        "RIGHT" => BinaryOp::Shr,
        other => unsupported!("attribute direction must be LEFT or RIGHT, not `{other}`"),
    };
    let (element, dtype) = (x.element, x.dtype);
    let width = number(dtype, (8 * dtype.bytes()) as f64);
    // A program takes the count modulo the width.
    let shifted = |values: &[Value]| {
        less(&values[1], &width).select(values[0].binary(op, values[1].clone()), number(dtype, 0.0))
    };
    Ok(vec![broadcast(emitter, &[x, by], element, &shifted)?])
}

/// All bits turned.
pub(crate) fn complement(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    if !x.element.is_integer() {
        unsupported!("elements of type {} are no integers", x.element);
    }
    let (element, ones) = (x.element, Value::typed_int(x.dtype, -1));
    let complement = |values: &[Value]| values[0].binary(BinaryOp::Xor, ones.clone());
    Ok(vec![broadcast(emitter, &[x], element, &complement)?])
}

/// A float as an integer, without its fraction. One that does not fit becomes the least integer of 32 or 64 bits, wrapped to
/// the type, as x86 converts: elements of one type have one meaning, whichever way they are computed.
pub(super) fn truncate(x: &Value, from: DType, to: ElementType, dtype: DType) -> Value {
    let (x, from) = if from == DType::F64 { (x.clone(), from) } else { (x.cast(DType::F32), DType::F32) };
    let is_long = matches!(to, ElementType::I64 | ElementType::U64 | ElementType::U32);
    let through = if is_long { DType::I64 } else { DType::I32 };
    let limit = if is_long { 2f64.powi(63) } else { 2f64.powi(31) };
    // Of `f64`, numbers below the least integer may still be truncated to it.
    let fits_below = match (is_long, from) {
        (false, DType::F64) => less(&number(from, -limit - 1.0), &x),
        _ => x.binary(BinaryOp::Ge, number(from, -limit)),
    };
    let fits = both(&fits_below, &less(&x, &number(from, limit)));
    let least = Value::typed_int(through, if is_long { i64::MIN } else { i64::from(i32::MIN) });
    let whole = fits.select(x.cast(through), least).cast(dtype);
    if to == ElementType::U64 {
        return x.binary(BinaryOp::Ge, number(from, limit)).select(x.cast(dtype), whole);
    }
    whole
}

/// Whether a float is infinite, of signs that attributes choose.
pub(crate) fn is_infinite(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    if !x.dtype.is_float() {
        unsupported!("elements of type {} are no floats", x.element);
    }
    let (negative, positive) = (operands.flag("detect_negative"), operands.flag("detect_positive"));
    if !negative && !positive {
        unsupported!("a test for nothing has no kernel form");
    }
    let wide = computing(x.dtype);
    let is_infinite = |values: &[Value]| {
        let x = values[0].cast(wide);
        let is = |value: f64| x.binary(BinaryOp::Eq, number(wide, value));
        match (negative, positive) {
            (true, true) => is(f64::INFINITY).binary(BinaryOp::Or, is(f64::NEG_INFINITY)),
            (true, false) => is(f64::NEG_INFINITY),
            (false, true) => is(f64::INFINITY),
            (false, false) => unreachable!("refused above"),
        }
    };
    Ok(vec![broadcast(emitter, &[x], ElementType::Bool, &is_infinite)?])
}

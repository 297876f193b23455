//! Conversions between element types.

use tilewright_core::dtype::DType;
use tilewright_core::expr::{BinaryOp, Constant, Expr, ExprKind, UnaryOp};

use crate::simd::Refusal;
use crate::simd::build::value::expr::is_number;
use crate::simd::build::value::group::{Form, Group};
use crate::simd::build::{Builder, Outcome};
use crate::simd::ir::Reg;
use crate::simd::x86::VectorOp;

impl Builder<'_> {
    /// Conversion with the meaning of Rust's `as`, for `f16` and `bf16` through `f32`; to a mask, whether
    /// the operand is not zero.
    pub(in crate::simd::build) fn cast(
        &mut self,
        from: DType,
        to: DType,
        group: Group,
        value: Reg,
    ) -> Outcome<Reg> {
        let (source, target) = (Form::of(from), Form::of(to));
        let (source, value) = match source {
            Form::Bool if target == Form::Bool => return Ok(value),
            Form::Bool => (Form::Int32, self.mask_to_ints(value, group)?),
            _ => (source, value),
        };
        if target == Form::Bool {
            let zero = self.same(0, source.bytes() as u8);
            return self.compare(BinaryOp::Ne, from, group, value, zero);
        }
        let narrow = group.width(Form::Int32);
        let wide = group.width(Form::Int64);
        let result = match (source, target) {
            (Form::Int32, Form::Int32)
            | (Form::Int64, Form::Int64)
            | (Form::Float32, Form::Float32)
            | (Form::Float64, Form::Float64) => value,
            (Form::Int32, Form::Int64) => self.vector(VectorOp::I64FromI32, wide, [value])?,
            (Form::Int64, Form::Int32) => self.vector(VectorOp::I32FromI64, wide, [value])?,
            (Form::Int32, Form::Float32) => self.vector(VectorOp::F32FromI32, narrow, [value])?,
            (Form::Int32, Form::Float64) => self.vector(VectorOp::F64FromI32, wide, [value])?,
            (Form::Int64, Form::Float32) => self.vector(VectorOp::F32FromI64, wide, [value])?,
            (Form::Int64, Form::Float64) => self.vector(VectorOp::F64FromI64, wide, [value])?,
            (Form::Float32, Form::Float64) => self.vector(VectorOp::F64FromF32, wide, [value])?,
            (Form::Float64, Form::Float32) => self.vector(VectorOp::F32FromF64, wide, [value])?,
            (Form::Float32 | Form::Float64, _) => self.float_to_int(source, target, group, value)?,
            _ => return Err(Refusal::Operation("a cast")),
        };
        if source.is_float() && !target.is_float() {
            return self.saturate(to, group, result);
        }
        self.normalize(to, group, result)
    }

    /// The nearest integer towards zero; the largest or smallest one where it does not fit, 0 for NaN. The instruction
    /// gives the smallest integer for whatever it cannot represent.
    fn float_to_int(&mut self, from: Form, to: Form, group: Group, value: Reg) -> Outcome<Reg> {
        let (op, width) = match (from, to) {
            (Form::Float32, Form::Int32) => (VectorOp::I32FromF32, group.width(to)),
            (Form::Float64, Form::Int32) => (VectorOp::I32FromF64, group.width(from)),
            (Form::Float32, _) => (VectorOp::I64FromF32, group.width(to)),
            (_, _) => (VectorOp::I64FromF64, group.width(to)),
        };
        let converted = self.vector(op, width, [value])?;
        let limit = if to == Form::Int32 { 2f64.powi(31) } else { 2f64.powi(63) };
        let limit = match from {
            Form::Float64 => self.same(limit.to_bits(), 8),
            _ => self.same(u64::from((limit as f32).to_bits()), 4),
        };
        let dtype = if from == Form::Float64 { DType::F64 } else { DType::F32 };
        let too_large = self.compare(BinaryOp::Ge, dtype, group, value, limit)?;
        let largest = match to {
            Form::Int32 => self.same(i32::MAX as u64, 4),
            _ => self.same(i64::MAX as u64, 8),
        };
        let bounded = self.blend(too_large, largest, converted, to, group)?;
        let not_a_number = self.unordered(from, group, value);
        let zero = self.same(0, to.bytes() as u8);
        self.blend(not_a_number, zero, bounded, to, group)
    }

    /// The integer of a float between bounds that integers of 32 bits have, if an expression is one: `x.max(-2.0).min(5.0) as i32`. Such a float is a
    /// number.
    pub(in crate::simd::build) fn bounded_float_to_int(
        &mut self,
        expr: &Expr,
        group: Group,
    ) -> Outcome<Option<Reg>> {
        let ExprKind::Cast(value) = expr.kind() else { return Ok(None) };
        if expr.dtype() != DType::I32 || value.dtype() != DType::F32 || !is_between_bounds(value) {
            return Ok(None);
        }
        let value = self.value(value, group)?;
        self.vector(VectorOp::I32FromF32, group.width(Form::Int32), [value]).map(Some)
    }

    /// The byte nearest to a float, if an expression is one: `x as u8`, or, with rounding and a zero point, `(round_ties_even(x) + 3.0) as u8`.
    ///
    /// The float is brought into the range of the bytes less the zero point first. The bounds are integers, so that rounding it then gives what
    /// saturation would, and the conversion rounds by itself.
    pub(in crate::simd::build) fn float_to_byte(
        &mut self,
        expr: &Expr,
        group: Group,
    ) -> Outcome<Option<Reg>> {
        let Some(ByteOfFloat { value, zero, rounds }) = ByteOfFloat::of(expr) else { return Ok(None) };
        let dtype = expr.dtype();
        let (low, high) = range_of_byte(dtype);
        let width = group.width(Form::Int32);
        let is_never_nan = is_number(value);
        let value = self.value(value, group)?;
        let bound = |this: &mut Self, bound: i32| this.same(u64::from(((bound - zero) as f32).to_bits()), 4);
        let (low, high) = (bound(self, low), bound(self, high));
        // Of NaN and another number, the instructions give the second operand.
        let bounded = self.vector(VectorOp::MaxF32, width, [value, low])?;
        let bounded = self.vector(VectorOp::MinF32, width, [bounded, high])?;
        let convert = if rounds { VectorOp::NearestI32FromF32 } else { VectorOp::I32FromF32 };
        let mut byte = self.vector(convert, width, [bounded])?;
        if zero != 0 {
            let zero = self.same(u64::from(zero as u32), 4);
            byte = self.vector(VectorOp::Add32, width, [byte, zero])?;
        }
        // That is 0 for unsigned bytes already.
        if dtype == DType::I8 && !is_never_nan {
            let not_a_number = self.unordered(Form::Float32, group, value);
            let zero = self.same(0, 4);
            byte = self.blend(not_a_number, zero, byte, Form::Int32, group)?;
        }
        Ok(Some(byte))
    }

    /// Brings saturated 32-bit integers to the nearest values of a narrower type.
    fn saturate(&mut self, to: DType, group: Group, value: Reg) -> Outcome<Reg> {
        if to.bits() != 8 {
            return Ok(value);
        }
        let (low, high) = range_of_byte(to);
        let width = group.width(Form::Int32);
        let (low, high) = (self.same(u64::from(low as u32), 4), self.same(u64::from(high as u32), 4));
        let value = self.vector(VectorOp::Max32, width, [value, low])?;
        self.vector(VectorOp::Min32, width, [value, high])
    }

    /// The bits of the operand as another type of the same size.
    pub(in crate::simd::build) fn bitcast(
        &mut self,
        from: DType,
        to: DType,
        group: Group,
        value: Reg,
    ) -> Outcome<Reg> {
        if from == to {
            return Ok(value);
        }
        if from.bytes() != to.bytes() || from.bytes() == 2 {
            return Err(Refusal::Operation("a bitcast"));
        }
        if from.bytes() == 1 { self.cast(from, to, group, value) } else { Ok(value) }
    }
}

/// Whether a value has a least and a greatest number, of which the difference to zero is less than 2³¹.
fn is_between_bounds(value: &Expr) -> bool {
    let (mut current, mut lower, mut upper) = (value, false, false);
    while let ExprKind::Binary(op @ (BinaryOp::Max | BinaryOp::Min), a, b) = current.kind() {
        let is_narrow = |bound: f64| bound.abs() < 2f64.powi(31);
        let bound = |of: &Expr| of.as_constant().map(Constant::as_f64).is_some_and(is_narrow);
        current = match () {
            () if bound(b) => a,
            () if bound(a) => b,
            () => return false,
        };
        *(if *op == BinaryOp::Max { &mut lower } else { &mut upper }) = true;
    }
    lower && upper
}

/// A float as a byte.
struct ByteOfFloat<'e> {
    /// The float.
    value: &'e Expr,
    /// The integer that is added after rounding.
    zero: i32,
    /// Whether it is rounded to the nearest integer, and not towards zero.
    rounds: bool,
}

impl<'e> ByteOfFloat<'e> {
    fn of(expr: &'e Expr) -> Option<Self> {
        let ExprKind::Cast(sum) = expr.kind() else { return None };
        if !matches!(expr.dtype(), DType::U8 | DType::I8) || sum.dtype() != DType::F32 {
            return None;
        }
        let rounded = |value: &'e Expr| match value.kind() {
            ExprKind::Unary(UnaryOp::RoundTiesEven, inner) => Some(inner),
            _ => None,
        };
        if let ExprKind::Binary(BinaryOp::Add, a, b) = sum.kind() {
            for (value, zero) in [(a, b), (b, a)] {
                let zero = zero.as_constant().map(Constant::as_f64).filter(|zero| zero.fract() == 0.0);
                if let (Some(value), Some(zero)) = (rounded(value), zero.filter(|zero| zero.abs() < 1e6)) {
                    return Some(ByteOfFloat { value, zero: zero as i32, rounds: true });
                }
            }
        }
        Some(match rounded(sum) {
            Some(value) => ByteOfFloat { value, zero: 0, rounds: true },
            None => ByteOfFloat { value: sum, zero: 0, rounds: false },
        })
    }
}

/// The least and the greatest byte of a type.
fn range_of_byte(dtype: DType) -> (i32, i32) {
    if dtype == DType::I8 { (i8::MIN.into(), i8::MAX.into()) } else { (0, u8::MAX.into()) }
}

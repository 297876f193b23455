//! Conversions between element types.

use tilewright_core::dtype::DType;
use tilewright_core::expr::BinaryOp;

use crate::simd::Refusal;
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

    /// Brings saturated 32-bit integers to the nearest values of a narrower type.
    fn saturate(&mut self, to: DType, group: Group, value: Reg) -> Outcome<Reg> {
        let (low, high) = match to {
            DType::I8 => (i32::from(i8::MIN), i32::from(i8::MAX)),
            DType::U8 => (0, i32::from(u8::MAX)),
            _ => return Ok(value),
        };
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

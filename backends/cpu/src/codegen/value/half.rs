//! `f16` and `bf16`, made of integer operations on `f32`.
//!
//! Values of both types are held as `f32`, exactly. An operation is done in `f32` and its result rounded to
//! the nearest value of the narrow type, ties to even.
//!
//! All functions take a scalar or a vector.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F32, F32X4, I32, I32X4};
use cranelift_codegen::ir::{InstBuilder, Type, Value};

use crate::codegen::Generator;

const SIGN: i64 = i32::MIN as i64;
const INFINITY: i64 = 0x7F80_0000;
const QUIET: i64 = 0x0040_0000;
/// The bits of 2⁻¹⁴, the smallest normal `f16`.
const F16_NORMAL: i64 = 0x3880_0000;
/// The bits of 2¹⁶, the first power of two that no `f16` reaches.
const F16_OVERFLOW: i64 = 0x4780_0000;
/// The exponents' biases differ by 112.
const F16_BIAS: i64 = 112 << 23;
/// The step of `f32` values between one half and one is 2⁻²⁴, that of subnormal `f16` values: adding it
/// rounds to such a value, and leaves its bits at the end.
const F16_MAGIC: f64 = 0.5;
const F16_MAGIC_BITS: i64 = 0x3F00_0000;

impl Generator<'_> {
    /// The nearest `f16` value.
    pub(in crate::codegen) fn round_to_f16(&mut self, value: Value) -> Value {
        let (float, int) = types_of(self.type_of(value));
        let bits = self.reinterpret(int, value);
        let sign = self.with(bits, SIGN, |this, a, b| this.ins().band(a, b));
        let magnitude = self.ins().bxor(bits, sign);
        let normal = self.round_bits(magnitude, 13);
        let overflow = self.compare_with(IntCC::SignedGreaterThanOrEqual, normal, F16_OVERFLOW);
        let infinity = self.int_constant(int, INFINITY);
        let normal = self.pick(overflow, infinity, normal);
        let small = self.reinterpret(float, magnitude);
        let magic = self.float_constant(float, F16_MAGIC);
        let shifted = self.ins().fadd(small, magic);
        let small = self.ins().fsub(shifted, magic);
        let small = self.reinterpret(int, small);
        let is_small = self.compare_with(IntCC::SignedLessThan, magnitude, F16_NORMAL);
        let rounded = self.pick(is_small, small, normal);
        self.restore(float, magnitude, rounded, sign)
    }

    /// The nearest `bf16` value.
    pub(in crate::codegen) fn round_to_bf16(&mut self, value: Value) -> Value {
        let (float, int) = types_of(self.type_of(value));
        let bits = self.reinterpret(int, value);
        let sign = self.with(bits, SIGN, |this, a, b| this.ins().band(a, b));
        let magnitude = self.ins().bxor(bits, sign);
        let rounded = self.round_bits(magnitude, 16);
        self.restore(float, magnitude, rounded, sign)
    }

    /// Rounds away the lowest `count` bits, ties to even. A carry into the exponent is right.
    fn round_bits(&mut self, magnitude: Value, count: i64) -> Value {
        let shift = self.iconst(I32, count);
        let odd = self.ins().ushr(magnitude, shift);
        let odd = self.with(odd, 1, |this, a, b| this.ins().band(a, b));
        let half = self.with(magnitude, (1 << (count - 1)) - 1, |this, a, b| this.ins().iadd(a, b));
        let sum = self.ins().iadd(half, odd);
        self.with(sum, -(1 << count), |this, a, b| this.ins().band(a, b))
    }

    /// Puts the sign back, and a quiet NaN where there was a NaN.
    fn restore(&mut self, float: Type, magnitude: Value, rounded: Value, sign: Value) -> Value {
        let int = self.type_of(rounded);
        let is_nan = self.compare_with(IntCC::SignedGreaterThan, magnitude, INFINITY);
        let nan = self.int_constant(int, INFINITY | QUIET);
        let result = self.pick(is_nan, nan, rounded);
        let result = self.ins().bor(result, sign);
        self.reinterpret(float, result)
    }

    /// From the bits of an `f16` in an `i32` to its value.
    pub(in crate::codegen) fn decode_f16(&mut self, bits: Value) -> Value {
        let int = self.type_of(bits);
        let float = if int.is_vector() { F32X4 } else { F32 };
        let magnitude = self.with(bits, 0x7FFF, |this, a, b| this.ins().band(a, b));
        let sign = self.ins().bxor(bits, magnitude);
        let shift = self.iconst(I32, 16);
        let sign = self.ins().ishl(sign, shift);
        let shift = self.iconst(I32, 13);
        let shifted = self.ins().ishl(magnitude, shift);
        // Multiplying by 2¹¹² corrects the exponent, of subnormal values as well.
        let unscaled = self.reinterpret(float, shifted);
        let scale = self.float_constant(float, f64::from_bits((1023 + 112) << 52));
        let scaled = self.ins().fmul(unscaled, scale);
        let scaled = self.reinterpret(int, scaled);
        let special = self.compare_with(IntCC::SignedGreaterThanOrEqual, magnitude, 0x7C00);
        let infinity = self.with(shifted, INFINITY, |this, a, b| this.ins().bor(a, b));
        let result = self.pick(special, infinity, scaled);
        let result = self.ins().bor(result, sign);
        self.reinterpret(float, result)
    }

    /// From an `f16` value to its bits in an `i32`.
    pub(in crate::codegen) fn encode_f16(&mut self, value: Value) -> Value {
        let (float, int) = types_of(self.type_of(value));
        let bits = self.reinterpret(int, value);
        let sign = self.with(bits, SIGN, |this, a, b| this.ins().band(a, b));
        let magnitude = self.ins().bxor(bits, sign);
        let small = self.reinterpret(float, magnitude);
        let magic = self.float_constant(float, F16_MAGIC);
        let small = self.ins().fadd(small, magic);
        let small = self.reinterpret(int, small);
        let small = self.with(small, F16_MAGIC_BITS, |this, a, b| this.ins().isub(a, b));
        let normal = self.with(magnitude, F16_BIAS, |this, a, b| this.ins().isub(a, b));
        let shift = self.iconst(I32, 13);
        let normal = self.ins().ushr(normal, shift);
        let is_small = self.compare_with(IntCC::SignedLessThan, magnitude, F16_NORMAL);
        let result = self.pick(is_small, small, normal);
        let special = self.compare_with(IntCC::SignedGreaterThanOrEqual, magnitude, INFINITY);
        let shift = self.iconst(I32, 13);
        let payload = self.ins().ushr(magnitude, shift);
        let payload = self.with(payload, 0x7FFF, |this, a, b| this.ins().band(a, b));
        let payload = self.with(payload, 0x7C00, |this, a, b| this.ins().bor(a, b));
        let result = self.pick(special, payload, result);
        let shift = self.iconst(I32, 16);
        let sign = self.ins().ushr(sign, shift);
        self.ins().bor(result, sign)
    }

    /// From the bits of a `bf16` in an `i32` to its value.
    pub(in crate::codegen) fn decode_bf16(&mut self, bits: Value) -> Value {
        let float = if self.type_of(bits).is_vector() { F32X4 } else { F32 };
        let shift = self.iconst(I32, 16);
        let shifted = self.ins().ishl(bits, shift);
        self.reinterpret(float, shifted)
    }

    /// From a `bf16` value to its bits in an `i32`.
    pub(in crate::codegen) fn encode_bf16(&mut self, value: Value) -> Value {
        let (_, int) = types_of(self.type_of(value));
        let bits = self.reinterpret(int, value);
        let shift = self.iconst(I32, 16);
        self.ins().ushr(bits, shift)
    }

    /// An operation with a constant of the operand's type.
    pub(in crate::codegen) fn with(
        &mut self,
        value: Value,
        constant: i64,
        operation: impl FnOnce(&mut Self, Value, Value) -> Value,
    ) -> Value {
        let ty = self.type_of(value);
        let constant = self.int_constant(ty, constant);
        operation(self, value, constant)
    }

    /// A comparison with a constant of the operand's type.
    pub(in crate::codegen) fn compare_with(&mut self, order: IntCC, value: Value, constant: i64) -> Value {
        self.with(value, constant, |this, a, b| this.ins().icmp(order, a, b))
    }
}

/// The float and the integer type with the shape of `ty`.
fn types_of(ty: Type) -> (Type, Type) {
    if ty.is_vector() { (F32X4, I32X4) } else { (F32, I32) }
}

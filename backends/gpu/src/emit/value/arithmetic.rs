//! Instructions of arithmetic. `tilewright_core::math::scalar` defines each operation.

use tilewright_core::dtype::DType;
use tilewright_core::expr::{BinaryOp, UnaryOp};

use super::{bits_type, class_of, ordered_type, type_of};
use crate::emit::{Generator, Outcome};
use crate::ptx::operand::Operand;
use crate::ptx::table::Op;
use crate::ptx::types::{Class, Type};

/// The largest number below one half: added before truncation it rounds to the nearest integer without lifting the float below
/// one half to one.
const BELOW_HALF_F32: f32 = 0.499_999_97;
const BELOW_HALF_F64: f64 = 0.499_999_999_999_999_94;

impl Generator<'_> {
    /// An operation on one operand.
    pub(super) fn unary(&mut self, op: UnaryOp, dtype: DType, a: Operand) -> Outcome<Operand> {
        let class = class_of(dtype);
        let ty = type_of(class);
        let a = if class == Class::Predicate { self.in_register(class, a) } else { a };
        let result = match op {
            UnaryOp::Neg => self.builder.compute(Op::Neg, ty, &[a]),
            UnaryOp::Abs if dtype.is_unsigned() => return Ok(a),
            UnaryOp::Abs => self.builder.compute(Op::Abs, ty, &[a]),
            UnaryOp::Not => self.builder.compute(Op::Not, bits_type(class), &[a]),
            UnaryOp::Sqrt => self.builder.compute(Op::Sqrt, ty, &[a]),
            UnaryOp::Floor => self.builder.compute(Op::Floor, ty, &[a]),
            UnaryOp::Ceil => self.builder.compute(Op::Ceil, ty, &[a]),
            UnaryOp::Trunc => self.builder.compute(Op::Truncate, ty, &[a]),
            UnaryOp::RoundTiesEven => self.builder.compute(Op::RoundTiesEven, ty, &[a]),
            UnaryOp::Round => {
                let half = match class {
                    Class::DoubleFloat => Operand::DoubleFloat(BELOW_HALF_F64.to_bits()),
                    _ => Operand::Float(BELOW_HALF_F32.to_bits()),
                };
                let half = self.builder.compute(Op::CopySign, ty, &[a, half]);
                let sum = self.builder.compute(Op::Add, ty, &[a, half]);
                self.builder.compute(Op::Truncate, ty, &[sum])
            }
            _ => return Err(self.broken(&format!("`{}` was not expanded", op.text()))),
        };
        Ok(self.normalize(dtype, result))
    }

    /// An operation on two operands of one type that gives a value of this type.
    pub(super) fn arithmetic(
        &mut self,
        op: BinaryOp,
        dtype: DType,
        a: Operand,
        b: Operand,
    ) -> Outcome<Operand> {
        let class = class_of(dtype);
        if class == Class::Predicate {
            return self.logic(op, a, b);
        }
        let ty = type_of(class);
        let result = match op {
            BinaryOp::Add => self.builder.compute(Op::Add, ty, &[a, b]),
            BinaryOp::Sub => self.builder.compute(Op::Sub, ty, &[a, b]),
            BinaryOp::Mul => self.builder.compute(Op::Mul, ty, &[a, b]),
            BinaryOp::Div if dtype.is_float() => self.builder.compute(Op::Div, ty, &[a, b]),
            BinaryOp::Rem if dtype.is_float() => self.float_remainder(class, a, b)?,
            BinaryOp::Div | BinaryOp::Rem => self.divide(op, dtype, a, b)?,
            BinaryOp::Min | BinaryOp::Max if dtype.is_float() => return self.extremum(op, class, a, b),
            BinaryOp::Minimum | BinaryOp::Maximum => self.propagating_extremum(op, class, a, b),
            BinaryOp::Min => self.builder.compute(Op::Min, ordered_type(dtype), &[a, b]),
            BinaryOp::Max => self.builder.compute(Op::Max, ordered_type(dtype), &[a, b]),
            BinaryOp::And => self.builder.compute(Op::And, bits_type(class), &[a, b]),
            BinaryOp::Or => self.builder.compute(Op::Or, bits_type(class), &[a, b]),
            BinaryOp::Xor => self.builder.compute(Op::Xor, bits_type(class), &[a, b]),
            BinaryOp::Shl | BinaryOp::Shr => self.shift(op, dtype, a, b),
            _ => return Err(self.broken(&format!("`{}` was not expanded", op.text()))),
        };
        Ok(self.normalize(dtype, result))
    }

    /// `a * b + c`, rounded once.
    pub(super) fn mul_add(&mut self, dtype: DType, a: Operand, b: Operand, c: Operand) -> Outcome<Operand> {
        let op = if dtype.is_float() { Op::Fma } else { Op::Mad };
        let result = self.builder.compute(op, type_of(class_of(dtype)), &[a, b, c]);
        Ok(self.normalize(dtype, result))
    }

    /// Of floats: a NaN is ignored when the other operand is a number; of equal operands, the second.
    fn extremum(&mut self, op: BinaryOp, class: Class, a: Operand, b: Operand) -> Outcome<Operand> {
        let ty = type_of(class);
        let comparison = if op == BinaryOp::Min { Op::Less } else { Op::Greater };
        let is_first = self.builder.compute(comparison, ty, &[a, b]);
        let is_nan = match b {
            // A constant is a number, or known not to be one.
            Operand::Float(bits) if !f32::from_bits(bits).is_nan() => None,
            Operand::DoubleFloat(bits) if !f64::from_bits(bits).is_nan() => None,
            _ => Some(self.builder.compute(Op::IsNan, ty, &[b, b])),
        };
        let takes_first = match is_nan {
            Some(is_nan) => self.builder.compute(Op::Or, Type::Pred, &[is_first, is_nan]),
            None => is_first,
        };
        Ok(self.builder.compute(Op::Select, ty, &[a, b, takes_first]))
    }

    /// Of floats: NaN where an operand is NaN, and −0 is smaller than +0. There is an instruction for `f32`; that for `f64` ignores a NaN.
    fn propagating_extremum(&mut self, op: BinaryOp, class: Class, a: Operand, b: Operand) -> Operand {
        let ty = type_of(class);
        let (plain, propagating) = match op {
            BinaryOp::Minimum => (Op::Min, Op::Minimum),
            _ => (Op::Max, Op::Maximum),
        };
        if ty != Type::F64 {
            return self.builder.compute(propagating, ty, &[a, b]);
        }
        let number = self.builder.compute(plain, ty, &[a, b]);
        let nan = self.builder.compute(Op::Add, ty, &[a, b]);
        let is_nan = self.builder.compute(Op::IsNan, ty, &[a, b]);
        self.builder.compute(Op::Select, ty, &[nan, number, is_nan])
    }

    /// The quotient or remainder of integers, truncated; 0 where the divisor is 0, and wrapped for the least integer by -1.
    fn divide(&mut self, op: BinaryOp, dtype: DType, a: Operand, b: Operand) -> Outcome<Operand> {
        let (ty, bits) = (ordered_type(dtype), bits_type(class_of(dtype)));
        let instruction = if op == BinaryOp::Div { Op::Div } else { Op::Rem };
        match b.integer() {
            Some(0) => return Ok(Operand::Integer(0)),
            Some(divisor) if divisor != -1 => return Ok(self.builder.compute(instruction, ty, &[a, b])),
            _ => {}
        }
        let [zero, one] = [0, 1].map(Operand::Integer);
        let is_zero = self.builder.compute(Op::Equal, ty, &[b, zero]);
        let mut is_special = is_zero;
        let mut is_minus_one = None;
        if !dtype.is_unsigned() {
            let found = self.builder.compute(Op::Equal, ty, &[b, Operand::Integer(-1)]);
            is_special = self.builder.compute(Op::Or, Type::Pred, &[is_zero, found]);
            is_minus_one = Some(found);
        }
        let divisor = self.builder.compute(Op::Select, bits, &[one, b, is_special]);
        let mut result = self.builder.compute(instruction, ty, &[a, divisor]);
        if let Some(is_minus_one) = is_minus_one
            && op == BinaryOp::Div
        {
            let negated = self.builder.compute(Op::Neg, ty, &[a]);
            result = self.builder.compute(Op::Select, bits, &[negated, result, is_minus_one]);
        }
        Ok(self.builder.compute(Op::Select, bits, &[zero, result, is_zero]))
    }

    /// The count is taken modulo the width.
    fn shift(&mut self, op: BinaryOp, dtype: DType, a: Operand, b: Operand) -> Operand {
        let bits = bits_type(class_of(dtype));
        let mask = Operand::Integer(dtype.bits() as i64 - 1);
        let count = match b.integer() {
            Some(count) => Operand::Integer(count & (dtype.bits() as i64 - 1)),
            None => {
                let count = self.builder.compute(Op::And, bits, &[b, mask]);
                match bits {
                    Type::B64 => self.builder.convert(Op::Convert, Type::U32, Type::U64, count),
                    _ => count,
                }
            }
        };
        match op {
            BinaryOp::Shl => self.builder.compute(Op::ShiftLeft, bits, &[a, count]),
            _ => self.builder.compute(Op::ShiftRight, ordered_type(dtype), &[a, count]),
        }
    }

    /// Brings the result of an operation to the values of its type: narrow integers wrap, narrow floats are rounded.
    pub(super) fn normalize(&mut self, dtype: DType, value: Operand) -> Operand {
        match dtype {
            DType::I8 => self.builder.compute(Op::Wrap, Type::S8, &[value]),
            DType::I16 => self.builder.compute(Op::Wrap, Type::S16, &[value]),
            DType::U8 => self.builder.compute(Op::Wrap, Type::U8, &[value]),
            DType::U16 => self.builder.compute(Op::Wrap, Type::U16, &[value]),
            DType::F16 | DType::BF16 => {
                let half = self.narrow_to_half(dtype, value);
                self.widen_half(dtype, half)
            }
            _ => value,
        }
    }
}

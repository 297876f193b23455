//! Conversions between element types, with the meaning of Rust's `as`.

use tilewright_core::dtype::DType;

use super::{bits_type, class_of, ordered_type, type_of, zero};
use crate::emit::{Generator, Outcome, unsupported};
use crate::ptx::operand::Operand;
use crate::ptx::table::Op;
use crate::ptx::types::{Class, Type};

impl Generator<'_> {
    /// Conversion with the meaning of Rust's `as`, for `f16` and `bf16` through `f32`; to `bool`, whether the operand is not zero.
    pub(super) fn cast(&mut self, from: DType, to: DType, value: Operand) -> Outcome<Operand> {
        if from == to {
            return Ok(value);
        }
        if from == DType::Bool {
            let number = self.bool_to_int(value);
            return self.cast(DType::U8, to, number);
        }
        let (source, target) = (class_of(from), class_of(to));
        // Conversions take registers.
        let value = self.in_register(source, value);
        let (own, other) = (ordered_type(from), ordered_type(to));
        let result = match (source, target) {
            (_, Class::Predicate) => self.builder.compute(Op::NotEqual, own, &[value, zero(source)]),
            (Class::Word, Class::Word) | (Class::Float, Class::Float) => value,
            (Class::Double, Class::Double) => return Ok(value),
            (Class::Word, Class::Double) => {
                let wide = if from.is_unsigned() { Type::U64 } else { Type::S64 };
                return Ok(self.builder.convert(Op::Convert, wide, own, value));
            }
            (Class::Double, Class::Word) => self.builder.convert(Op::Convert, Type::U32, Type::U64, value),
            (Class::Word | Class::Double, Class::Float | Class::DoubleFloat) => {
                self.builder.convert(Op::ConvertRounded, other, own, value)
            }
            (Class::Float, Class::DoubleFloat) => {
                return Ok(self.builder.convert(Op::Convert, Type::F64, Type::F32, value));
            }
            (Class::DoubleFloat, Class::Float) => {
                self.builder.convert(Op::ConvertRounded, Type::F32, Type::F64, value)
            }
            (Class::Float | Class::DoubleFloat, Class::Word | Class::Double) => {
                return Ok(self.float_to_int(source, to, value));
            }
            (Class::DoubleFloat, Class::DoubleFloat)
            | (Class::Predicate | Class::Half, _)
            | (_, Class::Half) => value,
        };
        Ok(self.normalize(to, result))
    }

    /// The nearest integer of the type towards zero; 0 for NaN.
    fn float_to_int(&mut self, source: Class, to: DType, value: Operand) -> Operand {
        let class = class_of(to);
        // Narrow integers are clamped afterwards.
        let ty = if to.bits() < 32 { Type::S32 } else { ordered_type(to) };
        let mut result = self.builder.convert(Op::Truncate, ty, type_of(source), value);
        if to.bits() < 32
            && let Some((low, high)) = to.int_range()
        {
            result = self.builder.compute(Op::Max, ty, &[result, Operand::Integer(low as i64)]);
            result = self.builder.compute(Op::Min, ty, &[result, Operand::Integer(high as i64)]);
        }
        // For 64 bits on either side, the instruction turns NaN into another number.
        if source == Class::DoubleFloat || class == Class::Double {
            let is_nan = self.builder.compute(Op::IsNan, type_of(source), &[value, value]);
            result =
                self.builder.compute(Op::Select, bits_type(class), &[Operand::Integer(0), result, is_nan]);
        }
        result
    }

    /// 1 for true, 0 for false.
    pub(in crate::emit) fn bool_to_int(&mut self, value: Operand) -> Operand {
        match value.integer() {
            Some(constant) => Operand::Integer(constant),
            None => self.builder.compute(
                Op::Select,
                Type::B32,
                &[Operand::Integer(1), Operand::Integer(0), value],
            ),
        }
    }

    /// The 16 bits of a narrow float, rounded.
    pub(in crate::emit) fn narrow_to_half(&mut self, dtype: DType, value: Operand) -> Operand {
        let ty = if dtype == DType::F16 { Type::F16 } else { Type::Bf16 };
        let value = self.in_register(Class::Float, value);
        self.builder.convert(Op::ConvertRounded, ty, Type::F32, value)
    }

    /// The narrow float of 16 bits in a register of as many.
    pub(in crate::emit) fn widen_half(&mut self, dtype: DType, half: Operand) -> Operand {
        if dtype == DType::F16 {
            return self.builder.convert(Op::Convert, Type::F32, Type::F16, half);
        }
        let word = self.builder.convert(Op::Convert, Type::U32, Type::U16, half);
        self.bf16_of_low_bits(word)
    }

    /// The `bf16` in the lower half of a word.
    pub(in crate::emit) fn bf16_of_low_bits(&mut self, word: Operand) -> Operand {
        let bits = self.builder.compute(Op::ShiftLeft, Type::B32, &[word, Operand::Integer(16)]);
        self.builder.convert(Op::Move, Type::F32, Type::B32, bits)
    }

    /// The bits of the operand as another type of the same size.
    pub(super) fn bitcast(&mut self, from: DType, to: DType, value: Operand) -> Outcome<Operand> {
        if from.bits() != to.bits() {
            return Err(unsupported(format!("a bitcast from {from} to {to}")));
        }
        if from.bits() == 8 {
            return self.cast(from, to, value);
        }
        let value = self.in_register(class_of(from), value);
        if from.bits() == 16 {
            return Ok(self.bitcast_half(from, to, value));
        }
        let (source, target) = (bits_type(class_of(from)), bits_type(class_of(to)));
        Ok(if source == target { value } else { self.builder.convert(Op::Move, target, source, value) })
    }

    fn bitcast_half(&mut self, from: DType, to: DType, value: Operand) -> Operand {
        let half = match from.is_float() {
            true => self.narrow_to_half(from, value),
            false => self.builder.convert(Op::Convert, Type::U16, Type::U32, value),
        };
        if to.is_float() {
            return self.widen_half(to, half);
        }
        let word = self.builder.convert(Op::Convert, Type::U32, Type::U16, half);
        self.normalize(to, word)
    }
}

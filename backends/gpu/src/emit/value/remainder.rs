//! The remainder of floats, which no instruction computes.
//!
//! It is exact: `a - b·n` for the integer `n` between 0 and `a / b` that is nearest to `a / b`, with the sign of `a`, as Rust's `%`. Let
//! `|a| = m·2^e` and `|b| = w·2^f` with integers `m` and `w`. Where `|a| ≥ |b|`, the remainder is `(m·2^(e - f) mod w)·2^f`, and a loop
//! doubles `m mod w` as often as 64 bits allow before it reduces it again.

use crate::emit::builder::{unless, when};
use crate::emit::{Generator, Outcome};
use crate::ptx::operand::{Operand, Register};
use crate::ptx::table::Op;
use crate::ptx::types::{Class, Type};

/// The bits of the fraction of an `f64`, and the ones that they are.
const FRACTION_BITS: u32 = f64::MANTISSA_DIGITS - 1;
const FRACTION: i64 = (1 << FRACTION_BITS) - 1;

/// A finite number that is not zero, as an integer times a power of two.
struct Scaled {
    /// The integer.
    digits: Operand,
    /// The exponent of the power of two, in the numbers of the exponents of `f64`.
    exponent: Operand,
}

impl Generator<'_> {
    /// `a % b` of two floats of a class.
    pub(super) fn float_remainder(&mut self, class: Class, a: Operand, b: Operand) -> Outcome<Operand> {
        let ty = super::type_of(class);
        let [a, b] = [a, b].map(|operand| self.in_register(class, operand));
        let [size, divisor] = [a, b].map(|operand| self.builder.compute(Op::Abs, ty, &[operand]));
        let result = self.builder.register(class);
        let end = self.builder.label();

        // A divisor that is larger, also an infinite one, leaves the dividend.
        self.builder.assign(result, a);
        let is_less = self.builder.compute(Op::Less, ty, &[size, divisor]);
        self.builder.branch(when(self.register_of(is_less)?), end);
        // Nothing is left by zero, of an infinity, or of what is not a number.
        let [nan, zero, infinity] = match class {
            Class::DoubleFloat => {
                [f64::NAN, 0.0, f64::INFINITY].map(|number| Operand::DoubleFloat(number.to_bits()))
            }
            _ => [f32::NAN, 0.0, f32::INFINITY].map(|number| Operand::Float(number.to_bits())),
        };
        self.builder.assign(result, nan);
        let divides = self.builder.compute(Op::Greater, ty, &[divisor, zero]);
        self.builder.branch(unless(self.register_of(divides)?), end);
        let is_finite = self.builder.compute(Op::Less, ty, &[size, infinity]);
        self.builder.branch(unless(self.register_of(is_finite)?), end);

        let digits = if class == Class::DoubleFloat { f64::MANTISSA_DIGITS } else { f32::MANTISSA_DIGITS };
        let (size, divisor) = (self.scaled(class, digits, size), self.scaled(class, digits, divisor));
        let rest = self.remainder_of_digits(digits, &size, &divisor)?;
        let magnitude = self.unscaled(&Scaled { digits: rest.into(), ..divisor })?;
        let magnitude = match class {
            Class::DoubleFloat => magnitude,
            _ => self.builder.convert(Op::ConvertRounded, Type::F32, Type::F64, magnitude),
        };
        let signed = self.builder.compute(Op::CopySign, ty, &[a, magnitude]);
        self.builder.assign(result, signed);
        self.builder.place(end);
        Ok(result.into())
    }

    /// A positive float with some binary digits as an integer of as many, and an exponent.
    fn scaled(&mut self, class: Class, digits: u32, value: Operand) -> Scaled {
        let double = match class {
            Class::DoubleFloat => value,
            _ => self.builder.convert(Op::Convert, Type::F64, Type::F32, value),
        };
        let bits = self.builder.convert(Op::Move, Type::B64, Type::F64, double);
        let integer = |value: u32| Operand::Integer(value.into());
        let exponent = self.builder.compute(Op::ShiftRight, Type::U64, &[bits, integer(FRACTION_BITS)]);
        let exponent = self.builder.convert(Op::Convert, Type::U32, Type::U64, exponent);
        // Numbers below the normal ones have the exponent of the least of these, and no leading one.
        let is_normal = self.builder.compute(Op::Greater, Type::S32, &[exponent, integer(0)]);
        let fraction = self.builder.compute(Op::And, Type::B64, &[bits, Operand::Integer(FRACTION)]);
        let leading = Operand::Integer(FRACTION + 1);
        let whole = self.builder.compute(Op::Or, Type::B64, &[fraction, leading]);
        let whole = self.builder.compute(Op::Select, Type::B64, &[whole, fraction, is_normal]);
        let unused = integer(f64::MANTISSA_DIGITS - digits);
        let exponent = self.builder.compute(Op::Max, Type::S32, &[exponent, integer(1)]);
        Scaled {
            digits: self.builder.compute(Op::ShiftRight, Type::U64, &[whole, unused]),
            exponent: self.builder.compute(Op::Add, Type::S32, &[exponent, unused]),
        }
    }

    /// The digits of the remainder, in the scale of the divisor, whose exponent is not the larger one.
    fn remainder_of_digits(&mut self, digits: u32, size: &Scaled, divisor: &Scaled) -> Outcome<Register> {
        let most = Operand::Integer(i64::from(u64::BITS - digits));
        let rest = self.builder.register(Class::Double);
        let left = self.builder.register(Class::Word);
        let (again, end) = (self.builder.label(), self.builder.label());
        let first = self.builder.compute(Op::Rem, Type::U64, &[size.digits, divisor.digits]);
        self.builder.assign(rest, first);
        let doublings = self.builder.compute(Op::Sub, Type::S32, &[size.exponent, divisor.exponent]);
        self.builder.assign(left, doublings);

        self.builder.place(again);
        let is_done = self.builder.compute(Op::LessEqual, Type::S32, &[left.into(), Operand::Integer(0)]);
        self.builder.branch(when(self.register_of(is_done)?), end);
        let now = self.builder.compute(Op::Min, Type::S32, &[left.into(), most]);
        let doubled = self.builder.compute(Op::ShiftLeft, Type::B64, &[rest.into(), now]);
        let reduced = self.builder.compute(Op::Rem, Type::U64, &[doubled, divisor.digits]);
        self.builder.assign(rest, reduced);
        self.builder.push(Op::Sub, Some(Type::S32), [left.into(), left.into(), now]);
        self.builder.branch(None, again);
        self.builder.place(end);
        Ok(rest)
    }

    /// The `f64` that an integer below `2^53` and an exponent stand for.
    fn unscaled(&mut self, value: &Scaled) -> Outcome<Operand> {
        let integer = |value: u32| Operand::Integer(value.into());
        let fraction_bits = integer(FRACTION_BITS);
        // The power of two that a unit of the integer is. Below the normal numbers, it is a single bit of a fraction.
        let exponent = self.builder.compute(Op::Sub, Type::S32, &[value.exponent, fraction_bits]);
        let is_normal = self.builder.compute(Op::Greater, Type::S32, &[exponent, integer(0)]);
        let wide = self.builder.convert(Op::Convert, Type::U64, Type::U32, exponent);
        let normal = self.builder.compute(Op::ShiftLeft, Type::B64, &[wide, fraction_bits]);
        let place = self.builder.compute(Op::Sub, Type::S32, &[value.exponent, integer(1)]);
        let one = self.in_register(Class::Double, integer(1));
        let below = self.builder.compute(Op::ShiftLeft, Type::B64, &[one, place]);
        let unit = self.builder.compute(Op::Select, Type::B64, &[normal, below, is_normal]);
        let unit = self.builder.convert(Op::Move, Type::F64, Type::B64, unit);
        let number = self.builder.convert(Op::ConvertRounded, Type::F64, Type::U64, value.digits);
        Ok(self.builder.compute(Op::Mul, Type::F64, &[number, unit]))
    }
}

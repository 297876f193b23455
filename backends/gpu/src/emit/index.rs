//! Indices: 32 bits where the values of all their parts are known to fit, otherwise 64.

use tilewright_core::index::{Base, Digit, Index, Interval, NO_MODULUS, Term};
use tilewright_core::visit::for_each_load_in_index;

use super::{Generator, Outcome, Variable};
use crate::ptx::operand::Operand;
use crate::ptx::table::Op;
use crate::ptx::types::{Class, Type};

/// The number of bits that an index is computed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Width {
    Word,
    Double,
}

impl Width {
    const fn signed(self) -> Type {
        match self {
            Width::Word => Type::S32,
            Width::Double => Type::S64,
        }
    }

    const fn unsigned(self) -> Type {
        match self {
            Width::Word => Type::U32,
            Width::Double => Type::U64,
        }
    }

    const fn bits(self) -> Type {
        match self {
            Width::Word => Type::B32,
            Width::Double => Type::B64,
        }
    }
}

impl Generator<'_> {
    /// The index with numbers in place of the variables that have one value.
    pub(super) fn resolve(&self, index: &Index) -> Index {
        index.substitute(&|var| match self.variables.get(&var) {
            Some(Variable::Constant(value)) => Some(Index::constant(*value)),
            _ => None,
        })
    }

    /// Whether an index, and everything that it is computed from, fits 32 bits.
    pub(super) fn fits_word(&self, index: &Index) -> bool {
        let mut sum = i128::from(index.constant_part()).abs();
        for Term { digit, coefficient } in index.terms() {
            let Interval { min, max } = digit.interval(&self.ranges);
            let largest = i128::from(min).abs().max(i128::from(max).abs());
            sum += i128::from(*coefficient).abs() * largest;
            let base_fits = match &digit.base {
                Base::Var(var) => match self.variables.get(var) {
                    Some(Variable::Register(register)) => register.class == Class::Word,
                    Some(Variable::Constant(_)) => true,
                    None => false,
                },
                Base::Sum(sum) => self.fits_word(sum),
                Base::Value(_) => {
                    let Interval { min, max } = digit.base.interval(&self.ranges);
                    i32::try_from(min).is_ok() && i32::try_from(max).is_ok()
                }
                Base::Lane(_) => false,
            };
            if !base_fits || digit.divisor > i64::from(i32::MAX) || digit.modulus > i64::from(i32::MAX) {
                return false;
            }
        }
        sum <= i128::from(i32::MAX)
    }

    /// The width in which an index is computed.
    pub(super) fn width_of(&self, index: &Index) -> Width {
        if self.fits_word(index) { Width::Word } else { Width::Double }
    }

    /// The value of an index without lanes, in 64 bits.
    pub(super) fn wide_index(&mut self, index: &Index) -> Outcome<Operand> {
        let index = self.resolve(index);
        self.index(&index, Width::Double)
    }

    /// The value of a [resolved](Self::resolve) index without lanes. It must fit the width.
    pub(super) fn index(&mut self, index: &Index, width: Width) -> Outcome<Operand> {
        if let Some(constant) = index.as_constant() {
            return Ok(Operand::Integer(constant));
        }
        let key = (index.clone(), width);
        if let Some(known) = self.known_index(&key) {
            return Ok(known);
        }
        let value = if width == Width::Double && self.fits_word(index) {
            let word = self.index(index, Width::Word)?;
            self.builder.convert(Op::Convert, Type::S64, Type::S32, word)
        } else {
            self.sum(index, width)?
        };
        self.remember_index(key, value);
        Ok(value)
    }

    fn known_index(&self, key: &(Index, Width)) -> Option<Operand> {
        self.scopes.iter().rev().find_map(|scope| scope.indices.get(key)).copied()
    }

    /// Remembers the value of an index in this part of the code, unless memory that may change decides it.
    fn remember_index(&mut self, key: (Index, Width), value: Operand) {
        let mut is_stable = true;
        for_each_load_in_index(&key.0, &mut |_, _| is_stable = false);
        if is_stable && let Some(scope) = self.scopes.last_mut() {
            scope.indices.insert(key, value);
        }
    }

    fn sum(&mut self, index: &Index, width: Width) -> Outcome<Operand> {
        let ty = width.signed();
        let mut sum: Option<Operand> = None;
        for Term { digit, coefficient } in index.terms() {
            let digit = self.digit(digit, width)?;
            let factor = Operand::Integer(*coefficient);
            sum = Some(match (sum, *coefficient) {
                (None, 1) => digit,
                (Some(sum), 1) => self.builder.compute(Op::Add, ty, &[sum, digit]),
                (Some(sum), -1) => self.builder.compute(Op::Sub, ty, &[sum, digit]),
                (None, _) => self.builder.compute(Op::Mul, ty, &[digit, factor]),
                (Some(sum), _) => self.builder.compute(Op::Mad, ty, &[digit, factor, sum]),
            });
        }
        Ok(match (sum, index.constant_part()) {
            (Some(sum), 0) => sum,
            (Some(sum), constant) => self.builder.compute(Op::Add, ty, &[sum, Operand::Integer(constant)]),
            (None, constant) => Operand::Integer(constant),
        })
    }

    fn digit(&mut self, digit: &Digit, width: Width) -> Outcome<Operand> {
        let key = (Index::digit(digit.clone()), width);
        if let Some(known) = self.known_index(&key) {
            return Ok(known);
        }
        let mut value = self.base(&digit.base, width)?;
        let is_negative = digit.base.interval(&self.ranges).min < 0;
        if digit.divisor != 1 {
            value = self.floor_div(value, digit.divisor, width, is_negative);
        }
        if digit.modulus != NO_MODULUS {
            value = self.modulo(value, digit.modulus, width, is_negative);
        }
        self.remember_index(key, value);
        Ok(value)
    }

    fn base(&mut self, base: &Base, width: Width) -> Outcome<Operand> {
        match base {
            Base::Var(var) => {
                let register = match self.variables.get(var) {
                    Some(Variable::Constant(value)) => return Ok(Operand::Integer(*value)),
                    Some(Variable::Register(register)) => *register,
                    None => self.dimension(*var)?,
                };
                Ok(match (register.class, width) {
                    (Class::Word, Width::Double) => {
                        self.builder.convert(Op::Convert, Type::S64, Type::S32, register.into())
                    }
                    (Class::Double, Width::Word) => {
                        self.builder.convert(Op::Convert, Type::U32, Type::U64, register.into())
                    }
                    _ => register.into(),
                })
            }
            Base::Sum(sum) => self.index(sum, width),
            Base::Value(value) => {
                let value = self.value(value, 0)?;
                Ok(match (width, value) {
                    (Width::Word, Operand::Register(_)) => {
                        self.builder.convert(Op::Convert, Type::U32, Type::U64, value)
                    }
                    _ => value,
                })
            }
            Base::Lane(_) => Err(self.broken("a lane stands outside of a vector")),
        }
    }

    /// The quotient by a positive constant, rounded down.
    fn floor_div(&mut self, value: Operand, divisor: i64, width: Width, is_negative: bool) -> Operand {
        if let Some(value) = value.integer() {
            return Operand::Integer(value.div_euclid(divisor));
        }
        let by = Operand::Integer(divisor);
        if is_power_of_two(divisor) {
            // Of a signed integer, this rounds down.
            let ty = if is_negative { width.signed() } else { width.unsigned() };
            let count = Operand::Integer(i64::from(divisor.trailing_zeros()));
            return self.builder.compute(Op::ShiftRight, ty, &[value, count]);
        }
        if !is_negative {
            return self.builder.compute(Op::Div, width.unsigned(), &[value, by]);
        }
        let remainder = self.modulo(value, divisor, width, true);
        let multiple = self.builder.compute(Op::Sub, width.signed(), &[value, remainder]);
        self.builder.compute(Op::Div, width.signed(), &[multiple, by])
    }

    /// The remainder by a positive constant, from 0 on.
    fn modulo(&mut self, value: Operand, modulus: i64, width: Width, is_negative: bool) -> Operand {
        if let Some(value) = value.integer() {
            return Operand::Integer(value.rem_euclid(modulus));
        }
        let by = Operand::Integer(modulus);
        if is_power_of_two(modulus) {
            return self.builder.compute(Op::And, width.bits(), &[value, Operand::Integer(modulus - 1)]);
        }
        if !is_negative {
            return self.builder.compute(Op::Rem, width.unsigned(), &[value, by]);
        }
        let ty = width.signed();
        let remainder = self.builder.compute(Op::Rem, ty, &[value, by]);
        let lifted = self.builder.compute(Op::Add, ty, &[remainder, by]);
        let is_below = self.builder.compute(Op::Less, ty, &[remainder, Operand::Integer(0)]);
        self.builder.compute(Op::Select, width.bits(), &[lifted, remainder, is_below])
    }
}

fn is_power_of_two(value: i64) -> bool {
    value > 0 && value & (value - 1) == 0
}

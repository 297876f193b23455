//! Indices: their values, the addresses made of them, and what is known of their lanes.
//!
//! The constant part of an index becomes the offset of the load or store. The other terms are summed from
//! the outermost loop inwards, so that what stays the same in an inner loop is computed before it and shared
//! by every access that differs in the constant only.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, Value};
use smallvec::SmallVec;
use tilewright_core::expr::{Expr, ExprKind};
use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::index::{Base, Digit, Index, NO_MODULUS};
use tilewright_core::visit;

use crate::codegen::emit::Key;
use crate::codegen::value::lanes::Group;
use crate::codegen::{Binding, Generator, Outcome, Storage};
use crate::flat::lanes::lane_offset;

/// Where an access goes: a pointer plus a constant number of bytes.
#[derive(Clone, Copy, Debug)]
pub(in crate::codegen) struct Address {
    pub(in crate::codegen) base: Value,
    pub(in crate::codegen) offset: i32,
}

/// An index of several lanes, taken apart: a scalar index, and a constant to add to it for each lane.
pub(in crate::codegen) type LaneOffsets = (Index, SmallVec<[i64; 16]>);

/// The terms of an index with the innermost scope that each depends on.
type Terms = SmallVec<[(usize, Digit, i64); 4]>;

/// The level of a digit that must be computed anew wherever it is used, because it contains a load.
const UNCACHED: usize = usize::MAX;

impl Generator<'_> {
    /// The value of an index without lanes.
    pub(in crate::codegen) fn index_value(&mut self, index: &Index) -> Outcome<Value> {
        let index = self.resolve(index);
        let terms = self.terms_of(&index, 1, 0);
        let sum = self.sum(None, &terms)?;
        match sum {
            None => Ok(self.iconst(I64, index.constant_part())),
            Some(sum) => Ok(self.add_constant(sum, index.constant_part())),
        }
    }

    /// The address of an element of a buffer in memory.
    pub(in crate::codegen) fn address(&mut self, buffer: BufferId, index: &Index) -> Outcome<Address> {
        let (base, offset, level) = match self.storage.get(&buffer) {
            Some(Storage::Memory { base, offset, level }) => (*base, *offset, *level),
            Some(Storage::Registers(_)) => {
                return Err(self.broken(format!("the address of {buffer:?}, which is in registers")));
            }
            None => match self.unit.frame.buffer(buffer) {
                Some(offset) => (self.frame_word(offset, I64)?, 0, 0),
                None => return Err(self.broken(format!("buffer {buffer:?} is used outside its lifetime"))),
            },
        };
        let size = self.unit.program.buffer(buffer).dtype.bytes() as i64;
        let index = self.resolve(index);
        let terms = self.terms_of(&index, size, level);
        let base = match self.sum(Some((buffer, base)), &terms)? {
            Some(sum) => sum,
            None => base,
        };
        let offset = offset.wrapping_add(index.constant_part().wrapping_mul(size));
        match i32::try_from(offset) {
            // A margin, because the parts of a group lie a few bytes further.
            Ok(offset) if offset < i32::MAX - 64 => Ok(Address { base, offset }),
            _ => Ok(Address { base: self.add_constant(base, offset), offset: 0 }),
        }
    }

    /// Puts in the variables that are known to be constant.
    pub(in crate::codegen) fn resolve(&self, index: &Index) -> Index {
        let constant = |var: VarId| match self.variables.get(&var) {
            Some(Binding::Constant(value)) => Some(Index::constant(*value)),
            _ => None,
        };
        let mut touched = false;
        index.for_each_var(&mut |var| touched |= constant(var).is_some());
        if touched { index.substitute(&constant) } else { index.clone() }
    }

    fn terms_of(&mut self, index: &Index, scale: i64, at_least: usize) -> Terms {
        let mut terms: Terms = index
            .terms()
            .iter()
            .map(|term| {
                let level = self.level_of(&term.digit).max(at_least);
                (level, term.digit.clone(), term.coefficient.wrapping_mul(scale))
            })
            .collect();
        terms.sort();
        terms
    }

    /// The innermost scope that a digit depends on.
    fn level_of(&self, digit: &Digit) -> usize {
        match &digit.base {
            Base::Value(value) if !is_pure(value) => UNCACHED,
            Base::Sum(sum) if sum.terms().iter().any(|term| self.level_of(&term.digit) == UNCACHED) => {
                UNCACHED
            }
            Base::Var(var) => self.level_of_var(*var),
            Base::Lane(_) => 0,
            Base::Sum(_) | Base::Value(_) => {
                let mut level = 0;
                Index::digit(digit.clone())
                    .for_each_var(&mut |var| level = level.max(self.level_of_var(var)));
                level
            }
        }
    }

    fn level_of_var(&self, var: VarId) -> usize {
        match self.variables.get(&var) {
            Some(Binding::Value { level, .. }) => *level,
            _ => 0,
        }
    }

    /// A buffer's address, if given, plus the terms, which are sorted by level; `None` for nothing at all.
    fn sum(&mut self, start: Option<(BufferId, Value)>, terms: &Terms) -> Outcome<Option<Value>> {
        let mut total = start.map(|(_, base)| base);
        let mut done = 0;
        while done < terms.len() {
            let level = terms[done].0;
            let end = terms.iter().position(|term| term.0 > level).unwrap_or(terms.len());
            let run = &terms[done..end];
            let before = total;
            let compute = |this: &mut Self| this.add_terms(before, run);
            total = Some(if level == UNCACHED {
                compute(self)?
            } else {
                let parts = terms[..end].iter().map(|(_, digit, scale)| (digit.clone(), *scale)).collect();
                let key = match start {
                    Some((buffer, _)) => Key::Pointer(buffer, parts),
                    None => Key::Sum(parts),
                };
                self.value_at(level, key, compute)?
            });
            done = end;
        }
        Ok(total)
    }

    fn add_terms(&mut self, start: Option<Value>, terms: &[(usize, Digit, i64)]) -> Outcome<Value> {
        let mut total = start;
        for (level, digit, scale) in terms {
            let scaled = self.scaled(*level, digit, *scale)?;
            total = Some(match total {
                Some(total) => self.ins().iadd(total, scaled),
                None => scaled,
            });
        }
        total.ok_or_else(|| self.broken("an empty sum".to_owned()))
    }

    fn scaled(&mut self, level: usize, digit: &Digit, scale: i64) -> Outcome<Value> {
        if level == UNCACHED {
            let value = self.digit(digit)?;
            return Ok(self.multiply_constant(value, scale));
        }
        let level = self.level_of(digit);
        self.value_at(level, Key::Scaled(digit.clone(), scale), |this| {
            let value = this.value_at(level, Key::Digit(digit.clone()), |this| this.digit(digit))?;
            Ok(this.multiply_constant(value, scale))
        })
    }

    fn digit(&mut self, digit: &Digit) -> Outcome<Value> {
        let mut value = match &digit.base {
            Base::Var(var) => self.variable(*var)?,
            Base::Sum(sum) => self.index_value(sum)?,
            Base::Value(value) => self.value(value, Group::SCALAR)?.low,
            Base::Lane(_) => return Err(self.broken("a lane in a scalar index".to_owned())),
        };
        if digit.divisor > 1 {
            value = self.floor_div_constant(value, digit.divisor);
        }
        if digit.modulus != NO_MODULUS {
            value = self.modulo_constant(value, digit.modulus);
        }
        Ok(value)
    }

    /// The value of a dimension or loop variable.
    pub(in crate::codegen) fn variable(&mut self, var: VarId) -> Outcome<Value> {
        match self.variables.get(&var) {
            Some(Binding::Value { value, .. }) => Ok(*value),
            Some(Binding::Constant(value)) => {
                let value = *value;
                Ok(self.iconst(I64, value))
            }
            None => match self.unit.frame.dim(var) {
                Some(offset) => self.frame_word(offset, I64),
                None => Err(self.broken(format!("variable {var:?} is not bound"))),
            },
        }
    }

    fn add_constant(&mut self, value: Value, constant: i64) -> Value {
        if constant == 0 {
            return value;
        }
        let constant = self.iconst(I64, constant);
        self.ins().iadd(value, constant)
    }

    fn multiply_constant(&mut self, value: Value, factor: i64) -> Value {
        match factor {
            1 => value,
            factor if factor > 0 && factor.count_ones() == 1 => {
                let shift = self.iconst(I64, i64::from(factor.trailing_zeros()));
                self.ins().ishl(value, shift)
            }
            _ => {
                let factor = self.iconst(I64, factor);
                self.ins().imul(value, factor)
            }
        }
    }

    /// The quotient by a constant, rounded down.
    ///
    /// A quotient of n ≥ 0 is the upper part of n · m with m = ⌈2^(63+l) / d⌉, l = ⌈log₂ d⌉ (Granlund and
    /// Montgomery, "Division by invariant integers using multiplication", 1994, theorem 4.2 with N = 63). A negative n
    /// goes through its complement: ⌊n / d⌋ = −1 − ⌊(−1 − n) / d⌋.
    fn floor_div_constant(&mut self, value: Value, divisor: i64) -> Value {
        let divisor = divisor as u64;
        let log = u64::BITS - (divisor - 1).leading_zeros();
        if divisor.is_power_of_two() {
            let shift = self.iconst(I64, i64::from(log));
            return self.ins().sshr(value, shift);
        }
        let multiplier = (1u128 << (63 + log)).div_ceil(u128::from(divisor)) as u64;
        let sign_shift = self.iconst(I64, 63);
        let sign = self.ins().sshr(value, sign_shift);
        let magnitude = self.ins().bxor(value, sign);
        let multiplier = self.iconst(I64, multiplier as i64);
        let high = self.ins().umulhi(magnitude, multiplier);
        let shift = self.iconst(I64, i64::from(log - 1));
        let quotient = self.ins().ushr(high, shift);
        self.ins().bxor(quotient, sign)
    }

    /// The remainder by a constant, between 0 and `modulus - 1`.
    fn modulo_constant(&mut self, value: Value, modulus: i64) -> Value {
        if modulus.count_ones() == 1 {
            let mask = self.iconst(I64, modulus - 1);
            return self.ins().band(value, mask);
        }
        let quotient = self.floor_div_constant(value, modulus);
        let multiple = self.multiply_constant(quotient, modulus);
        self.ins().isub(value, multiple)
    }

    /// Takes an index of several lanes apart; `None` when the lanes have nothing in common that is known.
    pub(in crate::codegen) fn lane_offsets(&mut self, index: &Index, lanes: u32) -> Option<LaneOffsets> {
        let index = self.resolve(index);
        let (with_lanes, without): (Vec<_>, Vec<_>) =
            index.terms().iter().cloned().partition(|term| Index::digit(term.digit.clone()).lanes() > 1);
        let vector = Index::from_terms(with_lanes, 0);
        let offsets: Option<_> = (0..lanes).map(|lane| lane_offset(&vector, lane)).collect();
        Some((Index::from_terms(without, index.constant_part()), offsets?))
    }

    /// Whether `value` lies in `0..extent`, as a boolean.
    pub(in crate::codegen) fn is_below(&mut self, value: Value, extent: Value) -> Value {
        self.ins().icmp(IntCC::UnsignedLessThan, value, extent)
    }
}

/// Whether an expression can be computed anywhere and any number of times.
fn is_pure(expr: &Expr) -> bool {
    let mut pure = true;
    visit::for_each_expr(expr, &mut |node| {
        pure &= match node.kind() {
            ExprKind::Load(..) | ExprKind::Bounded(..) => false,
            ExprKind::Index(index) => is_pure_index(index),
            _ => true,
        }
    });
    pure
}

fn is_pure_index(index: &Index) -> bool {
    index.terms().iter().all(|term| match &term.digit.base {
        Base::Value(value) => is_pure(value),
        Base::Sum(sum) => is_pure_index(sum),
        Base::Var(_) | Base::Lane(_) => true,
    })
}

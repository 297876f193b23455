//! Indices as values of general registers, and addresses.
//!
//! The constant part of an index becomes the offset of the memory operand. The other parts are summed from the outermost
//! loop inwards. The part that a loop adds is one of three things: an index register, where its counter times 1, 2, 4 or
//! 8 is all that the innermost loop adds; a pointer of its own that the loop advances, where it adds the same in each
//! iteration; or, behind divisions, a sum that is computed anew.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tilewright_core::dtype::DType;
use tilewright_core::expr::{BinaryOp, Constant, Expr, ExprKind};
use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::index::{Base, Digit, Index, NO_MODULUS};

use crate::flat::access::{can_report, for_each_load};
use crate::simd::Refusal;
use crate::simd::build::memory::linear::{Atom, Product, Sum};
use crate::simd::build::scope::{Key, Scope};
use crate::simd::build::value::group::Group;
use crate::simd::build::{Binding, Builder, Input, Outcome};
use crate::simd::ir::{self, Class, GeneralOp, Inst, MaskOp, Mem, Op, Operand, Reg, Width};

/// Products with the scope that each is computed in.
type Leveled = SmallVec<[(usize, Product); 4]>;

impl Builder<'_> {
    /// Puts in the variables that are known to be constant.
    pub(in crate::simd::build) fn resolve(&self, index: &Index) -> Index {
        let mut touched = false;
        index.for_each_var(&mut |var| touched |= self.known_constant(var).is_some());
        if touched { index.substitute(&|var| self.known_constant(var)) } else { index.clone() }
    }

    /// The value of a variable that is known to be constant.
    pub(in crate::simd::build) fn known_constant(&self, var: VarId) -> Option<Index> {
        match self.variables.get(&var) {
            Some(Binding::Constant(value)) => Some(Index::constant(*value)),
            _ => None,
        }
    }

    /// The value of an index without lanes.
    pub(in crate::simd::build) fn index_value(&mut self, index: &Index) -> Outcome<Operand> {
        let sum = Sum::of(&self.resolve(index));
        if sum.products.is_empty() {
            return Ok(Operand::Imm(sum.constant));
        }
        Ok(Operand::Reg(self.sum_value(&sum)?.1))
    }

    /// The value of a sum of one product at least, and the scope that it is computed in.
    pub(in crate::simd::build) fn sum_value(&mut self, sum: &Sum) -> Outcome<(usize, Reg)> {
        let products = self.leveled(sum)?;
        let level = products.iter().map(|(level, _)| *level).max().unwrap_or(0);
        let key = Key::Sum(sum.products.to_vec(), sum.constant);
        let value = self.value_at(level, key, |this| {
            let total = this.add_products(None, &products)?;
            Ok::<_, Refusal>(match sum.constant {
                0 => total,
                constant => this.general(GeneralOp::Add, [Operand::Reg(total), Operand::Imm(constant)]),
            })
        })?;
        Ok((level, value))
    }

    /// The value of an index in a register.
    pub(in crate::simd::build) fn index_register(&mut self, index: &Index) -> Outcome<Reg> {
        Ok(match self.index_value(index)? {
            Operand::Reg(reg) => reg,
            value => self.integer(value),
        })
    }

    /// A constant in a general register.
    pub(in crate::simd::build) fn integer(&mut self, value: Operand) -> Reg {
        self.general(GeneralOp::Copy, [value])
    }

    /// The place of an element of a buffer in memory.
    pub(in crate::simd::build) fn address(&mut self, buffer: BufferId, index: &Index) -> Outcome<Mem> {
        self.address_in(buffer, index, true)
    }

    /// The place of an element of a buffer in memory, with nothing in its index register.
    pub(in crate::simd::build) fn address_without_index(
        &mut self,
        buffer: BufferId,
        index: &Index,
    ) -> Outcome<Mem> {
        self.address_in(buffer, index, false)
    }

    fn address_in(&mut self, buffer: BufferId, index: &Index, may_index: bool) -> Outcome<Mem> {
        let size = self.program.buffer(buffer).dtype.bytes() as i64;
        let sum = Sum::of(&self.resolve(index)).scaled(size);
        let products = self.leveled(&sum)?;
        let (base, index) = self.pointer(buffer, &products, may_index)?;
        let mem = Mem { base: ir::Base::Register(base), index, offset: 0, buffer: Some(buffer) };
        match i32::try_from(sum.constant) {
            // A margin, because the parts of a group lie a few bytes further.
            Ok(offset) if offset < i32::MAX - 4096 => Ok(mem.further(offset)),
            _ => Err(Refusal::Offset),
        }
    }

    /// A buffer's address plus products sorted by scope, and perhaps a counter to be added by the memory operand.
    fn pointer(
        &mut self,
        buffer: BufferId,
        products: &Leveled,
        may_index: bool,
    ) -> Outcome<(Reg, Option<(Reg, u8)>)> {
        let mut pointer = self.input(Input::Buffer(buffer));
        let mut done = 0;
        while done < products.len() {
            let level = products[done].0;
            let end = products.iter().position(|(other, _)| *other > level).unwrap_or(products.len());
            let run: Leveled = products[done..end].iter().cloned().collect();
            let key =
                Key::Pointer(buffer, products[..end].iter().map(|(_, product)| product.clone()).collect());
            let before = pointer;
            match self.slopes(level, &run) {
                Some((counter, slopes)) => {
                    if may_index
                        && end == products.len()
                        && let [slope] = &slopes[..]
                        && slope.atoms.is_empty()
                        && let scale @ (1 | 2 | 4 | 8) = slope.coefficient
                    {
                        return Ok((before, Some((counter, scale as u8))));
                    }
                    let known = self.scopes[level].values.get(&key).copied();
                    pointer = match known {
                        Some(pointer) => pointer,
                        None => self.advancing(level, before, &slopes)?,
                    };
                    self.scopes[level].values.insert(key, pointer);
                }
                None => {
                    pointer = self.value_at(level, key, |this| this.add_products(Some(before), &run))?;
                }
            }
            done = end;
        }
        Ok((pointer, None))
    }

    /// The counter of the loop whose body the scope `level` is, and what one more iteration adds, if that is always
    /// the same.
    fn slopes(&self, level: usize, run: &Leveled) -> Option<(Reg, Vec<Product>)> {
        let around = self.scopes[level].around.as_ref()?;
        let slopes: Option<Vec<Product>> = run.iter().map(|(_, product)| product.slope(around.var)).collect();
        Some((around.counter, slopes?))
    }

    /// A pointer that starts as `from` and advances at the end of each iteration of the loop at `level`.
    fn advancing(&mut self, level: usize, from: Reg, slopes: &[Product]) -> Outcome<Reg> {
        let outer = self.hoisted_to.replace(level - 1);
        let result = self.start_and_step(from, slopes);
        self.hoisted_to = outer;
        let (pointer, step) = result?;
        if let Some(around) = &mut self.scopes[level].around {
            let args = [Operand::Reg(pointer), step];
            around.latch.push(Inst::new(Op::General(GeneralOp::Add), Width::Xmm, Some(pointer), args));
        }
        Ok(pointer)
    }

    fn start_and_step(&mut self, from: Reg, slopes: &[Product]) -> Outcome<(Reg, Operand)> {
        let mut sum = Sum { products: SmallVec::new(), constant: 0 };
        for slope in slopes {
            match slope.atoms.is_empty() {
                true => sum.constant = sum.constant.wrapping_add(slope.coefficient),
                false => sum.products.push(slope.clone()),
            }
        }
        let step = if sum.products.is_empty() {
            match i32::try_from(sum.constant) {
                Ok(step) => Operand::Imm(i64::from(step)),
                Err(_) => return Err(Refusal::Offset),
            }
        } else {
            Operand::Reg(self.sum_value(&sum)?.1)
        };
        let pointer = self.register(Class::General);
        self.push(Inst::new(Op::General(GeneralOp::Copy), Width::Xmm, Some(pointer), [Operand::Reg(from)]));
        Ok((pointer, step))
    }

    fn leveled(&self, sum: &Sum) -> Outcome<Leveled> {
        let mut products = Leveled::new();
        for product in &sum.products {
            let mut level = 0;
            for atom in &product.atoms {
                level = level.max(self.level_of(atom)?);
            }
            products.push((level, product.clone()));
        }
        products.sort();
        Ok(products)
    }

    /// The innermost scope that a factor depends on.
    fn level_of(&self, atom: &Atom) -> Outcome<usize> {
        let mut level = 0;
        let mut visit = |var: VarId| {
            if let Some(Binding::Loop(own)) = self.variables.get(&var) {
                level = level.max(*own);
            }
        };
        match atom {
            Atom::Var(var) => visit(*var),
            Atom::Digit(digit) => Index::digit(digit.clone()).for_each_var(&mut visit),
        }
        match atom {
            Atom::Digit(digit) if depends_on_data(digit) => Ok(level.max(self.innermost_that_may_not_run())),
            _ => Ok(level),
        }
    }

    /// The innermost scope whose code may not be executed although the code around it is. A check that may fail is not hoisted
    /// out of it.
    fn innermost_that_may_not_run(&self) -> usize {
        let may_not_run = |scope: &Scope| scope.around.as_ref().is_none_or(|around| !around.runs);
        self.scopes.iter().rposition(may_not_run).unwrap_or(0)
    }

    fn add_products(&mut self, start: Option<Reg>, products: &Leveled) -> Outcome<Reg> {
        let mut total = start;
        for (level, product) in products {
            let key = Key::Product(product.atoms.to_vec(), product.coefficient);
            let value = self.value_at(*level, key, |this| this.product(product))?;
            total = Some(match total {
                Some(total) => self.general(GeneralOp::Add, [Operand::Reg(total), Operand::Reg(value)]),
                None => value,
            });
        }
        Ok(total.unwrap_or_else(|| self.integer(Operand::Imm(0))))
    }

    fn product(&mut self, product: &Product) -> Outcome<Reg> {
        let mut total = None;
        for atom in &product.atoms {
            let level = self.level_of(atom)?.min(self.level());
            let value = self.value_at(level, Key::Atom(atom.clone()), |this| this.atom(atom))?;
            total = Some(match total {
                Some(total) => self.general(GeneralOp::Mul, [Operand::Reg(total), Operand::Reg(value)]),
                None => value,
            });
        }
        let total = total.unwrap_or_else(|| self.integer(Operand::Imm(1)));
        let by = product.coefficient;
        Ok(match by {
            1 => total,
            _ if by > 0 && by.count_ones() == 1 => {
                let shift = i64::from(by.trailing_zeros());
                self.general(GeneralOp::ShiftLeft, [Operand::Reg(total), Operand::Imm(shift)])
            }
            _ => self.general(GeneralOp::Mul, [Operand::Reg(total), Operand::Imm(by)]),
        })
    }

    fn atom(&mut self, atom: &Atom) -> Outcome<Reg> {
        match atom {
            Atom::Var(var) => self.variable(*var),
            Atom::Digit(digit) => self.digit(digit),
        }
    }

    fn variable(&mut self, var: VarId) -> Outcome<Reg> {
        match self.variables.get(&var).copied() {
            Some(Binding::Loop(level)) => match &self.scopes[level].around {
                Some(around) => Ok(around.counter),
                None => Err(Refusal::Unbound),
            },
            Some(Binding::Constant(value)) => Ok(self.integer(Operand::Imm(value))),
            None => Ok(self.input(Input::Var(var))),
        }
    }

    fn digit(&mut self, digit: &Digit) -> Outcome<Reg> {
        let mut value = match &digit.base {
            Base::Var(var) => self.variable(*var)?,
            Base::Sum(sum) => self.index_register(sum)?,
            Base::Value(value) => self.integer_expr(value)?,
            Base::Lane(_) => return Err(Refusal::Lanes),
        };
        if digit.divisor > 1 {
            value = self.divided(value, digit.divisor);
        }
        if digit.modulus == NO_MODULUS {
            return Ok(value);
        }
        let modulus = digit.modulus;
        if modulus.count_ones() == 1 {
            return Ok(self.general(GeneralOp::And, [Operand::Reg(value), Operand::Imm(modulus - 1)]));
        }
        let quotient = self.divided(value, modulus);
        let multiple = self.general(GeneralOp::Mul, [Operand::Reg(quotient), Operand::Imm(modulus)]);
        Ok(self.general(GeneralOp::Sub, [Operand::Reg(value), Operand::Reg(multiple)]))
    }

    /// The quotient by a constant, rounded down.
    fn divided(&mut self, value: Reg, divisor: i64) -> Reg {
        match divisor.count_ones() {
            1 => {
                let shift = i64::from(divisor.trailing_zeros());
                self.general(GeneralOp::ShiftRight, [Operand::Reg(value), Operand::Imm(shift)])
            }
            _ => self.general(GeneralOp::Divide, [Operand::Reg(value), Operand::Imm(divisor)]),
        }
    }

    /// An index that depends on data: it is checked when it is computed, and that may be before other statements, so that the
    /// leaf must not write the data.
    fn bounded(&mut self, value: &Expr, extent: &Index) -> Outcome<Reg> {
        let mut is_fixed = self.guard.is_none();
        for_each_load(value, &mut |load| {
            is_fixed &= !self.written.contains(&load.buffer);
        });
        if !is_fixed {
            return Err(Refusal::DataIndex);
        }
        let extent = self.index_register(extent)?;
        // Values that were computed further inside are not known here.
        let memos = std::mem::replace(&mut self.memos, vec![FxHashMap::default()]);
        let value = self.value(value, Group::SCALAR);
        self.memos = memos;
        let op = Op::Mask(MaskOp::WideToGeneral);
        let value = self.emit(Class::General, op, Width::Xmm, [Operand::Reg(value?)]);
        let args = [Operand::Reg(value), Operand::Reg(extent)];
        self.push(Inst::new(Op::Check, Width::Xmm, None, args));
        Ok(value)
    }

    /// The value of an `i64` expression without lanes, made of indices alone.
    pub(in crate::simd::build) fn integer_expr(&mut self, expr: &Expr) -> Outcome<Reg> {
        if expr.dtype() != DType::I64 {
            return Err(Refusal::DataIndex);
        }
        match expr.kind() {
            ExprKind::Constant(Constant::Int(value)) => Ok(self.integer(Operand::Imm(*value))),
            ExprKind::Index(index) => self.index_register(index),
            ExprKind::Bounded(value, extent) => self.bounded(value, extent),
            ExprKind::Binary(op, a, b) => {
                let op = match op {
                    BinaryOp::Add => GeneralOp::Add,
                    BinaryOp::Sub => GeneralOp::Sub,
                    BinaryOp::Mul => GeneralOp::Mul,
                    BinaryOp::Min => GeneralOp::Min,
                    BinaryOp::Max => GeneralOp::Max,
                    _ => return Err(Refusal::DataIndex),
                };
                let (a, b) = (self.integer_expr(a)?, self.integer_expr(b)?);
                Ok(self.general(op, [Operand::Reg(a), Operand::Reg(b)]))
            }
            _ => Err(Refusal::DataIndex),
        }
    }
}

/// Whether anything in a digit is read from memory, or may be found to be out of bounds.
fn depends_on_data(digit: &Digit) -> bool {
    let value = Expr::index(Index::digit(digit.clone()));
    let mut depends = can_report(&value);
    for_each_load(&value, &mut |_| depends = true);
    depends
}

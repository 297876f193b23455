//! Values of expressions, one group of lanes at a time.
//!
//! [Equal](crate::flat::value_number) expressions are computed once per statement and group. A value that is the same
//! in all lanes is computed once for all groups.

use rustc_hash::FxHashMap;
use tilewright_core::dtype::DType;
use tilewright_core::expr::{BinaryOp, Constant, Expr, ExprKind};
use tilewright_core::index::{Index, Interval, value_interval};
use tilewright_core::math::{Scaling, as_scaling};

use crate::flat::access::can_report;
use crate::flat::access::for_each_load;
use crate::simd::build::stmt::nest::is_index;
use crate::simd::build::stmt::registers::single;
use crate::simd::build::value::group::{Form, Group};
use crate::simd::build::{Builder, Input, Outcome};
use crate::simd::ir::{self, Class, Inst, Op, Operand, Reg, Width};
use crate::simd::x86::VectorOp;
use crate::simd::{Refusal, VectorExtension};

/// Stands for the first lane of any group, where all are the same.
const ANY_START: u32 = u32::MAX;

impl Builder<'_> {
    /// The value of an expression in a group of lanes; the same in all lanes when the expression has none.
    pub(in crate::simd::build) fn value(&mut self, expr: &Expr, group: Group) -> Outcome<Reg> {
        let form = Form::of(expr.dtype());
        if let (ExprKind::Constant(constant), true) = (expr.kind(), form != Form::Bool) {
            return Ok(self.constant_of(expr.dtype(), *constant));
        }
        let number = self.numbers.of(expr);
        let is_same_in_all_lanes = !group.is_scalar && self.numbers.lanes(number) == 1;
        let start = if is_same_in_all_lanes { ANY_START } else { group.start };
        let key = (number, Group { start, ..group });
        if let Some(reg) = self.memos.iter().rev().find_map(|memo| memo.get(&key)) {
            return Ok(*reg);
        }
        let reg = match expr.kind() {
            ExprKind::Select(..) if let Some(chosen) = self.load_selected(expr, group)? => chosen,
            ExprKind::Load(buffer, indices) if is_same_in_all_lanes => {
                let index = single(indices).ok_or(Refusal::Access)?;
                self.load_broadcast(*buffer, &index, group)?
            }
            _ if is_same_in_all_lanes && form != Form::Bool => {
                let scalar = self.scalar_value(expr)?;
                self.broadcast_register(scalar, form, group)
            }
            _ if compares_indices(expr) && self.numbers.lanes(number) == 1 => {
                let condition = self.condition(expr)?;
                self.broadcast_condition(condition, group)
            }
            _ if group.lanes * form.bytes() > self.extension.bytes() => return Err(Refusal::Lanes),
            _ => self.compute(expr, group)?,
        };
        if let Some(memo) = self.memos.last_mut() {
            memo.insert(key, reg);
        }
        Ok(reg)
    }

    /// The value of an expression without lanes in the first lane of a register. It is computed whatever lanes are wanted.
    fn scalar_value(&mut self, expr: &Expr) -> Outcome<Reg> {
        let Some(guard) = self.guard else { return self.value(expr, Group::SCALAR) };
        if !self.is_total(expr) {
            return Err(Refusal::Access);
        }
        self.guard = None;
        let value = self.value(expr, Group::SCALAR);
        self.guard = Some(guard);
        value
    }

    fn compute(&mut self, expr: &Expr, group: Group) -> Outcome<Reg> {
        let dtype = expr.dtype();
        match expr.kind() {
            ExprKind::Constant(constant) => self.mask_constant(constant.as_f64() != 0.0, group),
            ExprKind::Scalar(var) => self.scalar_argument(*var, dtype, group),
            ExprKind::Index(index) => self.index_lanes(index, group),
            ExprKind::Load(buffer, indices) => {
                let index = single(indices).ok_or(Refusal::Access)?;
                self.load(*buffer, &index, group)
            }
            ExprKind::Unary(op, a) => {
                let a = self.value(a, group)?;
                self.unary(*op, dtype, group, a)
            }
            ExprKind::Binary(op, a, b) => self.binary_value(*op, expr, a, b, group),
            ExprKind::MulAdd(a, b, c) => {
                let (a, b) = (self.value(a, group)?, self.value(b, group)?);
                let c = self.value(c, group)?;
                self.mul_add(dtype, group, [a, b, c])
            }
            ExprKind::Select(condition, then, otherwise) => match self.select_rarely(expr, group)? {
                Some(chosen) => Ok(chosen),
                None => self.select(condition, then, otherwise, group),
            },
            ExprKind::Cast(_) if let Some(byte) = self.float_to_byte(expr, group)? => Ok(byte),
            ExprKind::Cast(_) if let Some(integer) = self.bounded_float_to_int(expr, group)? => Ok(integer),
            ExprKind::Cast(a) => match a.kind() {
                ExprKind::Index(index) if index.lanes() == 1 && Form::of(dtype) == Form::Int32 => {
                    self.low_half_of_index(index, dtype, group)
                }
                _ => {
                    let value = self.value(a, group)?;
                    self.cast(a.dtype(), dtype, group, value)
                }
            },
            ExprKind::Bitcast(a) => {
                let value = self.value(a, group)?;
                self.bitcast(a.dtype(), dtype, group, value)
            }
            ExprKind::Bounded(..) => Err(Refusal::DataIndex),
        }
    }

    fn binary_value(&mut self, op: BinaryOp, expr: &Expr, a: &Expr, b: &Expr, group: Group) -> Outcome<Reg> {
        let dtype = a.dtype();
        match op {
            _ if op.is_comparison() => {
                if let Some(bounds) = self.as_bounds(expr) {
                    return self.lanes_within(bounds, group);
                }
                let (a, b) = (self.value(a, group)?, self.value(b, group)?);
                self.compare(op, dtype, group, a, b)
            }
            BinaryOp::Shl | BinaryOp::Shr => {
                let left = self.value(a, group)?;
                match b.as_constant() {
                    Some(Constant::Int(count)) => self.shift_by_constant(op, dtype, group, left, count),
                    _ => {
                        let count = self.value(b, group)?;
                        self.shift(op, dtype, group, left, count)
                    }
                }
            }
            BinaryOp::Mul if dtype == DType::I32 && self.are_halves(a, b) => {
                let width = group.width(Form::Int32);
                let (a, b) = (self.value(a, group)?, self.value(b, group)?);
                self.vector(VectorOp::MulAddPairs16, width, [a, b])
            }
            BinaryOp::Mul if Form::of(dtype).is_float() && self.extension == VectorExtension::Avx512 => {
                match as_scaling(expr) {
                    Some(Scaling { value, exponent }) => {
                        let (a, b) = (self.value(&value, group)?, self.value(&exponent, group)?);
                        self.scale(dtype, group, a, b)
                    }
                    None => {
                        let (a, b) = (self.value(a, group)?, self.value(b, group)?);
                        self.binary(op, dtype, group, a, b)
                    }
                }
            }
            BinaryOp::Min | BinaryOp::Max if Form::of(dtype).is_float() => {
                let facts = (is_number(a) && is_nonzero(a), is_number(b));
                let (a, b) = (self.value(a, group)?, self.value(b, group)?);
                self.float_min_max(op, dtype, group, (a, b), facts)
            }
            _ => {
                let (a, b) = (self.value(a, group)?, self.value(b, group)?);
                self.binary(op, dtype, group, a, b)
            }
        }
    }

    /// Whether two integers of 32 bits have 16 bits each, of which one is not negative: its upper half is zero, so that the sum of the products of
    /// both halves is the product. That takes half as many steps as a product of 32 bits on processors of Intel.
    fn are_halves(&self, a: &Expr, b: &Expr) -> bool {
        let of = |value: &Expr| value_interval(value, &self.ranges);
        let is_half = |values: Interval| values.min >= i16::MIN.into() && values.max <= i16::MAX.into();
        let (a, b) = (of(a), of(b));
        is_half(a) && is_half(b) && (a.min >= 0 || b.min >= 0)
    }

    /// A constant in every lane.
    fn constant_of(&mut self, dtype: DType, constant: Constant) -> Reg {
        let (bits, bytes) = bits_of(dtype, constant);
        self.same(bits, bytes)
    }

    fn scalar_argument(
        &mut self,
        var: tilewright_core::ids::VarId,
        dtype: DType,
        group: Group,
    ) -> Outcome<Reg> {
        let mem = self.input_place(Input::Scalar(var));
        let form = Form::of(dtype);
        let op = if form.is_wide() { VectorOp::Broadcast64 } else { VectorOp::Broadcast32 };
        let value = self.emit(Class::Vector, Op::Vector(op), group.width(form), [Operand::Mem(mem)]);
        match form {
            Form::Bool => self.mask_of_ints(value, group),
            _ => Ok(value),
        }
    }

    /// An index as a value.
    fn index_lanes(&mut self, index: &Index, group: Group) -> Outcome<Reg> {
        let width = group.width(Form::Int64);
        if index.lanes() == 1 {
            let value = self.index_register(index)?;
            return Ok(self.emit(Class::Vector, Op::BroadcastGeneral(8), width, [Operand::Reg(value)]));
        }
        let (scalar, offsets) = self.lane_offsets(index).ok_or(Refusal::DataIndex)?;
        let range = group.start as usize..(group.start + group.lanes) as usize;
        let bytes: Vec<u8> = offsets[range].iter().flat_map(|offset| offset.to_le_bytes()).collect();
        let offsets = self.bytes_constant(&bytes);
        let start = self.index_register(&scalar)?;
        let start = self.emit(Class::Vector, Op::BroadcastGeneral(8), width, [Operand::Reg(start)]);
        let args = [Operand::Reg(start), Operand::Reg(offsets)];
        Ok(self.emit(Class::Vector, Op::Vector(VectorOp::Add64), width, args))
    }

    /// An index that is the same in all lanes, as an integer of 32 bits or less: vectors of 64-bit integers are narrowed by AVX-512 alone.
    fn low_half_of_index(&mut self, index: &Index, dtype: DType, group: Group) -> Outcome<Reg> {
        let value = self.index_register(index)?;
        let width = group.width(Form::Int32);
        let low = self.emit(Class::Vector, Op::BroadcastGeneral(4), width, [Operand::Reg(value)]);
        self.normalize(dtype, group, low)
    }

    /// Lane 0 of a register in every lane.
    pub(in crate::simd::build) fn broadcast_register(
        &mut self,
        scalar: Reg,
        form: Form,
        group: Group,
    ) -> Reg {
        let op = if form.is_wide() { VectorOp::Broadcast64 } else { VectorOp::Broadcast32 };
        self.emit(Class::Vector, Op::Vector(op), group.width(form), [Operand::Reg(scalar)])
    }

    /// A copy that later writes to variables do not change.
    pub(in crate::simd::build) fn copy(&mut self, value: Reg, form: Form, group: Group) -> Outcome<Reg> {
        if form == Form::Bool && self.extension == VectorExtension::Avx512 {
            return Ok(value);
        }
        let load = Op::Vector(VectorOp::Load);
        Ok(self.emit(Class::Vector, load, group.width(form), [Operand::Reg(value)]))
    }

    fn select(&mut self, condition: &Expr, then: &Expr, otherwise: &Expr, group: Group) -> Outcome<Reg> {
        let form = Form::of(then.dtype());
        if let Some((low, high, is_lower)) = self.numbers.as_min_max(condition, then, otherwise) {
            let (low, high) = (self.value(low, group)?, self.value(high, group)?);
            // `low < high ? low : high` is a minimum of both, `low < high ? high : low` a maximum of both exchanged.
            let (op, a, b) = if is_lower { (BinaryOp::Min, low, high) } else { (BinaryOp::Max, high, low) };
            return self.plain_min_max(op, form, group, a, b);
        }
        let test = self.value(condition, group)?;
        if self.is_total(then) && self.is_total(otherwise) {
            let (a, b) = (self.value(then, group)?, self.value(otherwise, group)?);
            return self.blend(test, a, b, form, group);
        }
        let a = self.under_guard(test, condition, true, |this| this.value(then, group))?;
        let not_test = self.not_mask(test, group);
        let b = self.under_guard(not_test, condition, false, |this| this.value(otherwise, group))?;
        self.blend(test, a, b, form, group)
    }

    /// Runs `compute` for the active lanes of `mask`: where a condition holds, or fails.
    pub(in crate::simd::build) fn under_guard<R>(
        &mut self,
        mask: Reg,
        condition: &Expr,
        holds: bool,
        compute: impl FnOnce(&mut Self) -> Outcome<R>,
    ) -> Outcome<R> {
        let (mask, around) = match self.guard {
            Some(outer) => (self.and_masks(outer, mask), &self.wanted),
            None => (mask, &self.facts),
        };
        let known = self.knowing(around, condition, holds);
        let outer = (self.guard.replace(mask), std::mem::replace(&mut self.wanted, known));
        self.memos.push(FxHashMap::default());
        let result = compute(self);
        self.memos.pop();
        (self.guard, self.wanted) = outer;
        result
    }

    /// Whether an expression can be computed although its value may not be wanted.
    pub(super) fn is_total(&self, expr: &Expr) -> bool {
        let mut total = !can_report(expr);
        for_each_load(expr, &mut |access| {
            total &= access.indices.iter().all(|index| self.is_inside(access.buffer, index));
        });
        total
    }

    /// The number of lanes of an expression.
    pub(in crate::simd::build) fn lanes_of(&mut self, expr: &Expr) -> u32 {
        let number = self.numbers.of(expr);
        self.numbers.lanes(number)
    }

    /// An operation with a mask in which the other lanes become zero.
    pub(in crate::simd::build) fn masked(
        &mut self,
        class: Class,
        op: Op,
        width: Width,
        args: impl IntoIterator<Item = Operand>,
        mask: Option<Reg>,
    ) -> Reg {
        let dst = self.register(class);
        let mut inst = Inst::new(op, width, Some(dst), args);
        inst.mask = mask;
        self.push(inst);
        dst
    }

    /// An operation on vectors with an immediate operand.
    pub(in crate::simd::build) fn with_immediate(
        &mut self,
        op: VectorOp,
        width: Width,
        a: Reg,
        immediate: u8,
    ) -> Reg {
        let dst = self.register(Class::Vector);
        let mut inst = Inst::new(Op::Vector(op), width, Some(dst), [Operand::Reg(a)]);
        inst.immediate = immediate;
        self.push(inst);
        dst
    }

    /// An operation on vectors.
    pub(in crate::simd::build) fn vector(
        &mut self,
        op: VectorOp,
        width: ir::Width,
        args: impl IntoIterator<Item = Reg>,
    ) -> Outcome<Reg> {
        if op.code(self.extension, width).is_none() {
            return Err(Refusal::Operation("which needs AVX-512"));
        }
        Ok(self.emit(Class::Vector, Op::Vector(op), width, args.into_iter().map(Operand::Reg)))
    }
}

/// The bits of one lane that is constant, and how many bytes they are.
pub(in crate::simd::build) fn bits_of(dtype: DType, constant: Constant) -> (u64, u8) {
    let value = match constant {
        Constant::Int(value) => value,
        Constant::Float(_) => constant.as_f64() as i64,
    };
    match Form::of(dtype) {
        Form::Float32 => (u64::from((constant.as_f64() as f32).to_bits()), 4),
        Form::Float64 => (constant.as_f64().to_bits(), 8),
        Form::Int64 => (value as u64, 8),
        Form::Int32 | Form::Bool => (u64::from(value as u32), 4),
    }
}

/// Whether this compares values that general registers hold.
pub(in crate::simd::build) fn compares_indices(expr: &Expr) -> bool {
    match expr.kind() {
        ExprKind::Binary(op, a, b) => op.is_comparison() && is_index(a) && is_index(b),
        _ => false,
    }
}

/// Whether an expression of a floating-point type is seen never to be NaN.
pub(in crate::simd::build) fn is_number(expr: &Expr) -> bool {
    match expr.kind() {
        ExprKind::Constant(Constant::Float(bits)) => !f64::from_bits(*bits).is_nan(),
        ExprKind::Constant(Constant::Int(_)) => true,
        ExprKind::Cast(operand) => !operand.dtype().is_float(),
        _ => false,
    }
}

/// Whether an expression is a constant other than zero.
fn is_nonzero(expr: &Expr) -> bool {
    expr.as_constant().is_some_and(|constant| constant.as_f64() != 0.0)
}

//! Values of expressions, one group of lanes at a time.
//!
//! Expressions share parts, above all where a function was expanded, so [equal](crate::flat::value_number) expressions are
//! computed once per statement and group.

use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, Value};
use smallvec::SmallVec;
use tilewright_core::dtype::DType;
use tilewright_core::expr::{BinaryOp, Constant, Expr, ExprKind};
use tilewright_core::index::Index;

use crate::codegen::value::arith::OperandFacts;
use crate::codegen::value::lanes::{Form, Group, Lanes, Width};
use crate::codegen::{Generator, Outcome};
use crate::flat::lanes::at_lane;

/// Stands for the first lane of any group, where all are the same.
const ANY_START: u32 = u32::MAX;

impl Generator<'_> {
    /// The value of an expression in a group of lanes; the same in all lanes when the expression has none.
    pub(in crate::codegen) fn value(&mut self, expr: &Expr, group: Group) -> Outcome<Lanes> {
        if let ExprKind::Constant(constant) = expr.kind() {
            return Ok(self.constant(expr.dtype(), *constant, group.width));
        }
        let number = self.unit.numbers.of(expr);
        let is_same_in_all_lanes = group.width != Width::One && self.unit.numbers.lanes(number) == 1;
        let start = if is_same_in_all_lanes { ANY_START } else { group.start };
        let key = (number, Group { start, ..group });
        if let Some(lanes) = self.memos.iter().rev().find_map(|memo| memo.get(&key)) {
            return Ok(*lanes);
        }
        let lanes = match expr.kind() {
            ExprKind::Load(buffer, indices) if is_same_in_all_lanes => {
                let index = self.single_index(indices)?;
                self.load_broadcast(*buffer, expr.dtype(), &index, group.width)?
            }
            _ if is_same_in_all_lanes => {
                let scalar = self.value(expr, Group::SCALAR)?;
                self.broadcast(Form::of(expr.dtype()), group.width, scalar.low)
            }
            _ => self.compute(expr, group)?,
        };
        if let Some(memo) = self.memos.last_mut() {
            memo.insert(key, lanes);
        }
        Ok(lanes)
    }

    fn compute(&mut self, expr: &Expr, group: Group) -> Outcome<Lanes> {
        let dtype = expr.dtype();
        match expr.kind() {
            ExprKind::Constant(constant) => Ok(self.constant(dtype, *constant, group.width)),
            ExprKind::Scalar(var) => match self.unit.frame.scalar(*var) {
                Some(offset) => self.scalar_argument(offset, dtype),
                None => Err(self.broken(format!("scalar {var:?} is no parameter"))),
            },
            ExprKind::Index(index) => self.index_lanes(index, group),
            ExprKind::Load(buffer, indices) => {
                let index = self.single_index(indices)?;
                self.load(*buffer, dtype, &index, group)
            }
            ExprKind::Unary(op, a) => {
                let a = self.value(a, group)?;
                self.unary(*op, dtype, group.width, a)
            }
            ExprKind::Binary(op, a, b) => self.binary_value(*op, a, b, group),
            ExprKind::MulAdd(a, b, c) => {
                let factors = self.factors(a, b, group)?;
                let addend = self.value(c, group)?;
                self.mul_add(dtype, factors, addend)
            }
            ExprKind::Select(condition, then, otherwise) => self.select(condition, then, otherwise, group),
            ExprKind::Cast(a) => {
                let lanes = self.value(a, group)?;
                self.cast(a.dtype(), dtype, group.width, lanes)
            }
            ExprKind::Bitcast(a) => {
                let lanes = self.value(a, group)?;
                self.bitcast(a.dtype(), dtype, group.width, lanes)
            }
            ExprKind::Bounded(a, extent) => self.bounded(a, extent, group),
        }
    }

    /// The factors of a fused multiplication and addition, of which the first is overwritten by the result.
    ///
    /// So it had better be a register that nothing else needs. A constant is such a register, and so is a vector
    /// that is loaded for this one use. Where the vector is used again, as in a register tile of several
    /// rows, it is the element that multiplies it, which is then loaded and broadcast for this use alone: no
    /// more work than a copy.
    fn factors(&mut self, a: &Expr, b: &Expr, group: Group) -> Outcome<(Lanes, Lanes)> {
        let (a, b) = if b.as_constant().is_some() { (b, a) } else { (a, b) };
        if group.width == Width::One || a.as_constant().is_some() {
            return self.both(a, b, group);
        }
        let (element, vector) = match (self.lanes_of(a), self.lanes_of(b)) {
            (1, lanes) if lanes > 1 => (a, b),
            (lanes, 1) if lanes > 1 => (b, a),
            _ => return self.both(a, b, group),
        };
        if !self.is_used_again(vector) {
            let element = self.value(element, group)?;
            return Ok((self.value(vector, group)?, element));
        }
        let broadcast = match element.kind() {
            ExprKind::Load(buffer, indices) if self.broadcasts(*buffer, element.dtype()) => {
                let index = self.single_index(indices)?;
                self.load_broadcast_anew(*buffer, element.dtype(), &index, group.width)?
            }
            _ => self.value(element, group)?,
        };
        Ok((broadcast, self.value(vector, group)?))
    }

    /// Whether an expression is a load that several statements of the sequence make.
    fn is_used_again(&self, expr: &Expr) -> bool {
        match expr.kind() {
            ExprKind::Load(buffer, indices) => {
                indices.first().is_some_and(|index| self.shared_loads.contains(&(*buffer, index.clone())))
            }
            _ => false,
        }
    }

    /// Two operands. A constant comes last, so that it takes no register while the other is computed.
    pub(in crate::codegen) fn both(&mut self, a: &Expr, b: &Expr, group: Group) -> Outcome<(Lanes, Lanes)> {
        if a.as_constant().is_some() {
            let b = self.value(b, group)?;
            return Ok((self.value(a, group)?, b));
        }
        Ok((self.value(a, group)?, self.value(b, group)?))
    }

    fn binary_value(&mut self, op: BinaryOp, a: &Expr, b: &Expr, group: Group) -> Outcome<Lanes> {
        let dtype = a.dtype();
        match op {
            BinaryOp::Shl | BinaryOp::Shr if self.lanes_of(b) == 1 => {
                let left = self.value(a, group)?;
                let count = self.value(b, Group::SCALAR)?;
                self.shift(op, dtype, left, count.low)
            }
            BinaryOp::Shl | BinaryOp::Shr => {
                let (left, counts) = self.both(a, b, group)?;
                self.shift_lanes(op, dtype, group.width, left, counts)
            }
            _ => {
                let (left, right) = self.both(a, b, group)?;
                if op.is_comparison() {
                    return self.compare(op, dtype, group.width, left, right);
                }
                let facts = OperandFacts { left: is_number(a) && is_nonzero(a), right: is_number(b) };
                self.binary(op, dtype, group.width, (left, right), facts)
            }
        }
    }

    fn shift_lanes(
        &mut self,
        op: BinaryOp,
        dtype: DType,
        width: Width,
        values: Lanes,
        counts: Lanes,
    ) -> Outcome<Lanes> {
        let form = Form::of(dtype);
        let mut results: SmallVec<[Value; 4]> = SmallVec::new();
        for lane in 0..width.lanes() {
            let value = self.extract(values, form, width, lane);
            let count = self.extract(counts, form, width, lane);
            results.push(self.shift(op, dtype, value.into(), count)?.low);
        }
        Ok(self.assemble(form, width, &results))
    }

    /// An index as a value.
    fn index_lanes(&mut self, index: &Index, group: Group) -> Outcome<Lanes> {
        let lanes = index.lanes();
        if lanes == 1 {
            return Ok(self.index_value(index)?.into());
        }
        let range = group.start..group.start + group.width.lanes();
        match self.lane_offsets(index, lanes) {
            Some((scalar, offsets)) => {
                let start = self.index_value(&scalar)?;
                let start = self.broadcast(Form::Int64, group.width, start);
                let offsets: SmallVec<[i64; 4]> = range.map(|lane| offsets[lane as usize]).collect();
                let offsets = self.int64_lanes(group.width, &offsets);
                Ok(start.zip(offsets, |a, b| self.ins().iadd(a, b)))
            }
            None => {
                let mut values: SmallVec<[Value; 4]> = SmallVec::new();
                for lane in range {
                    let place = at_lane(&self.resolve(index), lane);
                    values.push(self.index_value(&place)?);
                }
                Ok(self.assemble(Form::Int64, group.width, &values))
            }
        }
    }

    /// The operand where it lies in `0..extent`; otherwise 0, and the failure is reported.
    fn bounded(&mut self, operand: &Expr, extent: &Index, group: Group) -> Outcome<Lanes> {
        let operand = self.value(operand, group)?;
        let extent = self.index_value(extent)?;
        let mut results: SmallVec<[Value; 4]> = SmallVec::new();
        for lane in 0..group.width.lanes() {
            let value = self.extract(operand, Form::Int64, group.width, lane);
            let inside = self.is_below(value, extent);
            let harmless = match self.wanted(group.width, lane) {
                Some(wanted) => {
                    let unwanted = self.not_bool(wanted.into()).low;
                    self.ins().bor(inside, unwanted)
                }
                None => inside,
            };
            self.report_unless(harmless, value, extent);
            let zero = self.iconst(I64, 0);
            results.push(self.ins().select(inside, value, zero));
        }
        Ok(self.assemble(Form::Int64, group.width, &results))
    }

    /// Leaves a note in the call's status if `condition` does not hold, unless there is one already.
    fn report_unless(&mut self, condition: Value, value: Value, extent: Value) {
        let (cold, merge) = (self.builder.create_block(), self.builder.create_block());
        self.builder.set_cold_block(cold);
        self.builder.ins().brif(condition, merge, &[], cold, &[]);
        self.switch_to(cold);
        self.builder.seal_block(cold);
        self.report(value, extent);
        self.builder.ins().jump(merge, &[]);
        self.switch_to(merge);
        self.builder.seal_block(merge);
    }

    /// The number of lanes of an expression.
    pub(in crate::codegen) fn lanes_of(&mut self, expr: &Expr) -> u32 {
        let number = self.unit.numbers.of(expr);
        self.unit.numbers.lanes(number)
    }
}

/// Whether an expression of a floating-point type is seen never to be NaN.
fn is_number(expr: &Expr) -> bool {
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

//! Values of expressions, one lane at a time.
//!
//! Expressions share parts, above all where a function was expanded, so [equal](tilewright_core::flat::value_number) expressions
//! are computed once per statement and lane.
//!
//! An operand holds an element in the [class](class_of) of its type: a predicate, an integer extended to 32
//! bits, a 64-bit integer, an `f32` (also for the narrower floats, exactly), an `f64`.

mod arithmetic;
mod compare;
mod convert;
mod remainder;
mod select;

use tilewright_core::dtype::DType;
use tilewright_core::expr::{BinaryOp, Constant, Expr, ExprKind};
use tilewright_core::flat::lanes::at_lane;
use tilewright_core::index::Index;

use super::builder::when;
use super::index::Width;
use super::{Generator, Outcome};
use crate::launch::LaunchArgument;
use crate::ptx::operand::Operand;
use crate::ptx::table::{Op, Space};
use crate::ptx::types::{Class, Type};

/// The class of the registers that hold elements of a type.
pub(super) const fn class_of(dtype: DType) -> Class {
    match dtype {
        DType::Bool => Class::Predicate,
        DType::I8 | DType::U8 | DType::I16 | DType::U16 | DType::I32 | DType::U32 => Class::Word,
        DType::I64 | DType::U64 => Class::Double,
        DType::F16 | DType::BF16 | DType::F32 => Class::Float,
        DType::F64 => Class::DoubleFloat,
        DType::Float8E4M3FN | DType::Float8E5M2 | DType::Int4 | DType::UInt4 => {
            panic!("lowering replaces elements that are only stored by bytes")
        }
    }
}

/// The type that instructions compute elements of a class with.
pub(super) const fn type_of(class: Class) -> Type {
    match class {
        Class::Predicate => Type::Pred,
        Class::Half => Type::B16,
        Class::Word => Type::S32,
        Class::Double => Type::S64,
        Class::Float => Type::F32,
        Class::DoubleFloat => Type::F64,
    }
}

/// As [`type_of`], with unsigned integers where the elements are.
pub(super) const fn ordered_type(dtype: DType) -> Type {
    match (type_of(class_of(dtype)), dtype.is_unsigned()) {
        (Type::S32, true) => Type::U32,
        (Type::S64, true) => Type::U64,
        (ty, _) => ty,
    }
}

/// As [`type_of`], for instructions that see bits only.
pub(super) const fn bits_type(class: Class) -> Type {
    match class {
        Class::Word => Type::B32,
        Class::Double => Type::B64,
        _ => type_of(class),
    }
}

impl Generator<'_> {
    /// The value of an expression in a lane; the same in all lanes when the expression has none.
    pub(in crate::emit) fn value(&mut self, expr: &Expr, lane: u32) -> Outcome<Operand> {
        if let ExprKind::Constant(constant) = expr.kind() {
            return Ok(constant_operand(expr.dtype(), *constant));
        }
        if let Some(known) = self.known_value(expr, lane) {
            return Ok(known);
        }
        let value = self.compute(expr, lane)?;
        let number = self.numbers.of(expr);
        let lane = if self.numbers.lanes(number) == 1 { 0 } else { lane };
        if let Some(memo) = self.memos.last_mut() {
            memo.insert((number, lane), value);
        }
        Ok(value)
    }

    /// The value of an expression that the current statement has computed already, on all ways to this place.
    fn known_value(&mut self, expr: &Expr, lane: u32) -> Option<Operand> {
        let number = self.numbers.of(expr);
        let lane = if self.numbers.lanes(number) == 1 { 0 } else { lane };
        self.memos.iter().rev().find_map(|memo| memo.get(&(number, lane))).copied()
    }

    fn compute(&mut self, expr: &Expr, lane: u32) -> Outcome<Operand> {
        let dtype = expr.dtype();
        match expr.kind() {
            ExprKind::Constant(constant) => Ok(constant_operand(dtype, *constant)),
            ExprKind::Scalar(var) => self.scalar(*var, dtype),
            ExprKind::Index(index) => self.wide_index(&at_lane(index, lane)),
            ExprKind::Load(buffer, indices) => self.load(expr, *buffer, indices, lane),
            ExprKind::Unary(op, a) => {
                let a = self.value(a, lane)?;
                self.unary(*op, dtype, a)
            }
            ExprKind::Binary(op, a, b) => self.binary(*op, a, b, lane),
            ExprKind::MulAdd(a, b, c) => {
                let [a, b, c] = [self.value(a, lane)?, self.value(b, lane)?, self.value(c, lane)?];
                self.mul_add(dtype, a, b, c)
            }
            ExprKind::Select(condition, then, otherwise) => {
                self.select(expr, [condition, then, otherwise], lane)
            }
            ExprKind::Cast(a) => {
                let value = self.value(a, lane)?;
                self.cast(a.dtype(), dtype, value)
            }
            ExprKind::Bitcast(a) => {
                let value = self.value(a, lane)?;
                self.bitcast(a.dtype(), dtype, value)
            }
            ExprKind::Bounded(a, extent) => self.bounded(a, extent, lane),
        }
    }

    fn binary(&mut self, op: BinaryOp, a: &Expr, b: &Expr, lane: u32) -> Outcome<Operand> {
        let dtype = a.dtype();
        if op.is_comparison()
            && let (Some(a), Some(b)) = (self.index_in_word(a, lane), self.index_in_word(b, lane))
        {
            let [a, b] = [self.index(&a, Width::Word)?, self.index(&b, Width::Word)?];
            return self.comparison(op, DType::I32, a, b);
        }
        let [a, b] = [self.value(a, lane)?, self.value(b, lane)?];
        if op.is_comparison() { self.comparison(op, dtype, a, b) } else { self.arithmetic(op, dtype, a, b) }
    }

    /// An expression that is an index of 32 bits, or a constant one, in a lane.
    fn index_in_word(&self, expr: &Expr, lane: u32) -> Option<Index> {
        let index = match expr.kind() {
            ExprKind::Index(index) => self.resolve(&at_lane(index, lane)),
            ExprKind::Constant(Constant::Int(value)) if expr.dtype() == DType::I64 => Index::constant(*value),
            _ => return None,
        };
        (self.width_of(&index) == Width::Word).then_some(index)
    }

    /// The value, when it lies in `0..extent`. Otherwise the first thread that comes here writes the value and the extent to the
    /// failure record of the launch, and the value is 0.
    fn bounded(&mut self, value: &Expr, extent: &Index, lane: u32) -> Outcome<Operand> {
        let value = self.value(value, lane)?;
        let extent = self.wide_index(extent)?;
        // As unsigned integers, negative values are large.
        let is_inside = self.builder.compute(Op::Less, Type::U64, &[value, extent]);
        let predicate = self.register_of(is_inside)?;
        let record = self.pointer(LaunchArgument::FailureRecord)?;
        let end = self.builder.label();
        self.builder.branch(when(predicate), end);
        let flag = Operand::Address(record, 0);
        let old = self.builder.compute(
            Op::CompareAndSwap,
            Type::B32,
            &[flag, Operand::Integer(0), Operand::Integer(1)],
        );
        let is_late = self.builder.compute(Op::NotEqual, Type::S32, &[old, Operand::Integer(0)]);
        let is_late = self.register_of(is_late)?;
        self.builder.branch(when(is_late), end);
        for (offset, content) in [(8, value), (16, extent)] {
            let place = Operand::Address(record, offset);
            self.builder.push(Op::Store(Space::Global, 1), Some(Type::B64), [place, content]);
        }
        self.builder.place(end);
        Ok(self.builder.compute(Op::Select, Type::B64, &[value, Operand::Integer(0), is_inside]))
    }
}

/// The constant of a type.
pub(super) fn constant_operand(dtype: DType, constant: Constant) -> Operand {
    match (class_of(dtype), constant) {
        (Class::Float, _) => Operand::Float((constant.as_f64() as f32).to_bits()),
        (Class::DoubleFloat, _) => Operand::DoubleFloat(constant.as_f64().to_bits()),
        (_, Constant::Int(value)) => Operand::Integer(dtype.wrap(value)),
        (_, Constant::Float(_)) => Operand::Integer(dtype.wrap(constant.as_f64() as i64)),
    }
}

/// The constant 0 of a form.
pub(in crate::emit) const fn zero(class: Class) -> Operand {
    match class {
        Class::Float => Operand::Float(0),
        Class::DoubleFloat => Operand::DoubleFloat(0),
        Class::Predicate | Class::Half | Class::Word | Class::Double => Operand::Integer(0),
    }
}

//! The values that a definition computes with, before their types are settled.
//!
//! A [`Value`] is a shared tree. Literals and accumulators may still lack a type (`let mut sum = 0.0`);
//! types are inferred over the whole definition when the builder finishes. Values name tensors and
//! accumulators as they were at the moment of reading, so that `let old = x[[i]]` keeps its meaning
//! when `x[[i]]` is overwritten afterwards.

use std::sync::Arc;

use crate::dtype::DType;
use crate::expr::{BinaryOp, UnaryOp};
use crate::ids::VarId;

/// A scalar value inside a definition: an index, an element or something computed from them.
#[derive(Clone, Debug)]
pub struct Value(pub(in crate::build) Arc<ValueKind>);

/// The number of a tensor, accumulator or materialised value within one builder.
pub(in crate::build) type TensorNumber = usize;

/// How many writes had been recorded when a tensor was read: the read sees exactly those.
pub(in crate::build) type Clock = u32;

#[derive(Debug)]
pub(in crate::build) enum ValueKind {
    /// An integer literal that takes the other operand's type.
    Int(i64),
    /// A floating-point literal that takes the other operand's type.
    Float(f64),
    /// A literal with a type.
    TypedInt(DType, i64),
    /// A literal with a type.
    TypedFloat(DType, f64),
    /// A symbolic dimension or compile-time parameter.
    Dim(VarId),
    /// The user's loop variable of the loop with this number.
    Loop(usize),
    /// A run-time scalar argument.
    Scalar(VarId, DType),
    /// An element of a tensor (or an accumulator, without indices), as it was at that time.
    Load(TensorNumber, Vec<Value>, Clock),
    /// The value of the `let` with this number.
    Bound(usize),
    Unary(UnaryOp, Value),
    Binary(BinaryOp, Value, Value),
    Select(Value, Value, Value),
    Cast(DType, Value),
    MulAdd(Value, Value, Value),
    Powi(Value, i32),
}

impl Value {
    pub(in crate::build) fn new(kind: ValueKind) -> Self {
        Value(Arc::new(kind))
    }

    pub(in crate::build) fn kind(&self) -> &ValueKind {
        &self.0
    }

    /// The address of the node: a key for values that the recording keeps, and for no others.
    pub(in crate::build) fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// The values that this one is directly computed from, in order; of a load, its indices.
    pub(in crate::build) fn operands(&self) -> Vec<&Value> {
        match self.kind() {
            ValueKind::Int(_)
            | ValueKind::Float(_)
            | ValueKind::TypedInt(..)
            | ValueKind::TypedFloat(..)
            | ValueKind::Dim(_)
            | ValueKind::Loop(_)
            | ValueKind::Scalar(..)
            | ValueKind::Bound(_) => Vec::new(),
            ValueKind::Load(_, indices, _) => indices.iter().collect(),
            ValueKind::Unary(_, a) | ValueKind::Cast(_, a) | ValueKind::Powi(a, _) => vec![a],
            ValueKind::Binary(_, a, b) => vec![a, b],
            ValueKind::Select(a, b, c) | ValueKind::MulAdd(a, b, c) => vec![a, b, c],
        }
    }

    /// An integer literal without suffix: takes the type of what it meets.
    pub fn int(value: i64) -> Self {
        Value::new(ValueKind::Int(value))
    }

    /// A floating-point literal without suffix: takes the type of what it meets.
    pub fn float(value: f64) -> Self {
        Value::new(ValueKind::Float(value))
    }

    /// An integer literal of a given type; `usize` and `isize` are [`DType::I64`].
    pub fn typed_int(dtype: DType, value: i64) -> Self {
        Value::new(ValueKind::TypedInt(dtype, value))
    }

    /// A floating-point literal of a given type.
    pub fn typed_float(dtype: DType, value: f64) -> Self {
        Value::new(ValueKind::TypedFloat(dtype, value))
    }

    /// `true` or `false`.
    pub fn bool(value: bool) -> Self {
        Value::typed_int(DType::Bool, i64::from(value))
    }

    /// `self op other`. `&&` and `||` are [`BinaryOp::And`] and [`BinaryOp::Or`] and never evaluate an
    /// element on their right side in vain. `/` and `%` of indices are those of `usize`.
    pub fn binary(&self, op: BinaryOp, other: Value) -> Self {
        Value::new(ValueKind::Binary(op, self.clone(), other))
    }

    /// A function of one value.
    pub fn unary(&self, op: UnaryOp) -> Self {
        Value::new(ValueKind::Unary(op, self.clone()))
    }

    /// `if self { then } else { otherwise }`, evaluating only the chosen one.
    pub fn select(&self, then: Value, otherwise: Value) -> Self {
        Value::new(ValueKind::Select(self.clone(), then, otherwise))
    }

    /// `self as dtype`; `usize` and `isize` are [`DType::I64`].
    pub fn cast(&self, dtype: DType) -> Self {
        Value::new(ValueKind::Cast(dtype, self.clone()))
    }

    /// The same value, for a literal without a type in that type.
    pub fn of_type(&self, dtype: DType) -> Self {
        match *self.kind() {
            ValueKind::Int(value) if dtype.is_float() => Value::typed_float(dtype, value as f64),
            ValueKind::Int(value) => Value::typed_int(dtype, value),
            ValueKind::Float(value) => Value::typed_float(dtype, value),
            _ => self.clone(),
        }
    }

    /// `self.mul_add(factor, addend)`: `self * factor + addend`, rounded once.
    pub fn mul_add(&self, factor: Value, addend: Value) -> Self {
        Value::new(ValueKind::MulAdd(self.clone(), factor, addend))
    }

    /// `self.powi(exponent)`: a constant integer power, by repeated multiplication.
    pub fn powi(&self, exponent: i32) -> Self {
        Value::new(ValueKind::Powi(self.clone(), exponent))
    }
}

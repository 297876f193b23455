//! Value expressions.
//!
//! An [`Expr`] is an immutable, shared tree that computes one value, or one value per lane when an
//! index inside it contains a [lane](crate::index::Base::Lane). Index arithmetic is *not* written with these nodes but
//! with the canonical [`Index`]; [`ExprKind::Index`] brings an index into a value.
//!
//! # Meaning
//! - Integers wrap. Integer division and remainder truncate as in Rust; by zero they give zero, so that no
//!   compiled kernel can trap.
//! - `f16` and `bf16` are computed in `f32` and rounded after each operation.
//! - `min` and `max` of floats are those of Rust: a NaN operand is ignored when the other is a number.
//! - `minimum` and `maximum` are those of IEEE 754-2019: NaN when an operand is NaN, and −0 is smaller than +0. The order of the
//!   operands matters for neither, so that a reduction has one result in any order.
//! - A cast is Rust's `as`: it saturates from float to integer and wraps between integers.
//! - `select` evaluates only the chosen branch: a load in the other one is never made.
//! - Logic operators on `bool` evaluate both sides.

use std::sync::Arc;

use smallvec::SmallVec;
pub use tilewright_vocabulary::{BinaryOp, Cost, Operands, UnaryOp};

use crate::dtype::DType;
use crate::ids::{BufferId, VarId};
use crate::index::Index;
use crate::tensor::narrow;

/// The indices of a load or a store, one per dimension of the buffer.
pub type Indices = Vec<Index>;

/// A value expression: a shared tree, cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Expr(Arc<ExprNode>);

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct ExprNode {
    dtype: DType,
    kind: ExprKind,
}

/// A typed constant.
///
/// Integers and `bool`s are stored as `i64`, those of `u64` by their bits, floats as the bits of their `f64` value (every
/// `f16`, `bf16` and `f32` value is exact in `f64`), so that equality and hashing are exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Constant {
    /// An integer or `bool`.
    Int(i64),
    /// The bits of an `f64`.
    Float(u64),
}

impl Constant {
    /// A floating-point constant.
    pub fn float(value: f64) -> Self {
        Constant::Float(value.to_bits())
    }

    /// The value as `f64`.
    pub fn as_f64(self) -> f64 {
        match self {
            Constant::Int(value) => value as f64,
            Constant::Float(bits) => f64::from_bits(bits),
        }
    }
}

/// The operation of an expression, with its operands.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ExprKind {
    /// A constant of the expression's type.
    Constant(Constant),
    /// A run-time scalar argument.
    Scalar(VarId),
    /// The value of an index, of type `i64`.
    Index(Index),
    /// An element of a buffer.
    Load(BufferId, Indices),
    /// An operation on one operand.
    Unary(UnaryOp, Expr),
    /// An operation on two operands of equal type.
    Binary(BinaryOp, Expr, Expr),
    /// `a * b + c`, rounded once.
    MulAdd(Expr, Expr, Expr),
    /// `if condition { then } else { otherwise }`; only the chosen branch is evaluated.
    Select(Expr, Expr, Expr),
    /// Conversion to the expression's type, with the meaning of Rust's `as`.
    Cast(Expr),
    /// The operand's bits as the expression's type, of the same size.
    Bitcast(Expr),
    /// An index that depends on data: the operand when it lies in `0..extent`. Otherwise the call
    /// reports the failure, carries on with 0, and ends in an error.
    Bounded(Expr, Index),
}

impl Expr {
    /// An expression of the given type. The caller vouches for the type; the verifier checks it.
    pub fn new(dtype: DType, kind: ExprKind) -> Self {
        Expr(Arc::new(ExprNode { dtype, kind }))
    }

    /// The element type of the value.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// The operation of the expression, with its operands.
    pub fn kind(&self) -> &ExprKind {
        &self.0.kind
    }

    /// Whether both are the very same node in memory, hence equal.
    pub fn ptr_eq(&self, other: &Expr) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The address of the node: equal for shared nodes, useful as a key while the expression lives.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as *const u8 as usize
    }

    /// A constant of an integer type or `bool`.
    pub fn int(dtype: DType, value: i64) -> Self {
        if dtype.is_float() {
            return Self::float(dtype, value as f64);
        }
        Expr::new(dtype, ExprKind::Constant(Constant::Int(value)))
    }

    /// A constant of a floating-point type, rounded to that type.
    pub fn float(dtype: DType, value: f64) -> Self {
        let rounded = match dtype {
            DType::F16 => half::f16::from_f64(value).to_f64(),
            DType::BF16 => half::bf16::from_f64(value).to_f64(),
            DType::F32 => f64::from(value as f32),
            dtype if dtype.is_storage_only() => {
                f64::from(narrow::decode(dtype, narrow::encode(dtype, value as f32)))
            }
            _ => value,
        };
        Expr::new(dtype, ExprKind::Constant(Constant::float(rounded)))
    }

    /// A constant of type `bool`.
    pub fn bool(value: bool) -> Self {
        Expr::new(DType::Bool, ExprKind::Constant(Constant::Int(i64::from(value))))
    }

    /// The constant zero of a type.
    pub fn zero(dtype: DType) -> Self {
        Expr::int(dtype, 0)
    }

    /// The value of an index.
    pub fn index(index: Index) -> Self {
        Expr::new(DType::I64, ExprKind::Index(index))
    }

    /// An element of a buffer of type `dtype`.
    pub fn load(dtype: DType, buffer: BufferId, indices: impl IntoIterator<Item = Index>) -> Self {
        Expr::new(dtype, ExprKind::Load(buffer, indices.into_iter().collect()))
    }

    /// An operation on one operand.
    pub fn unary(op: UnaryOp, operand: Expr) -> Self {
        Expr::new(operand.dtype(), ExprKind::Unary(op, operand))
    }

    /// An operation on two operands of equal type.
    pub fn binary(op: BinaryOp, left: Expr, right: Expr) -> Self {
        let dtype = if op.is_comparison() { DType::Bool } else { left.dtype() };
        Expr::new(dtype, ExprKind::Binary(op, left, right))
    }

    /// `if condition { then } else { otherwise }`.
    pub fn select(condition: Expr, then: Expr, otherwise: Expr) -> Self {
        Expr::new(then.dtype(), ExprKind::Select(condition, then, otherwise))
    }

    /// `a * b + c`, rounded once.
    pub fn mul_add(a: Expr, b: Expr, c: Expr) -> Self {
        Expr::new(c.dtype(), ExprKind::MulAdd(a, b, c))
    }

    /// Conversion with the meaning of Rust's `as`; the operand itself when the type is the same.
    pub fn cast(dtype: DType, operand: Expr) -> Self {
        if operand.dtype() == dtype {
            return operand;
        }
        Expr::new(dtype, ExprKind::Cast(operand))
    }

    /// The operands, in order. Indices inside loads are not operands; see [`crate::visit`].
    pub fn operands(&self) -> SmallVec<[&Expr; 3]> {
        match self.kind() {
            ExprKind::Constant(_) | ExprKind::Scalar(_) | ExprKind::Index(_) | ExprKind::Load(..) => {
                SmallVec::new()
            }
            ExprKind::Unary(_, a) | ExprKind::Cast(a) | ExprKind::Bitcast(a) | ExprKind::Bounded(a, _) => {
                SmallVec::from_slice(&[a])
            }
            ExprKind::Binary(_, a, b) => SmallVec::from_slice(&[a, b]),
            ExprKind::MulAdd(a, b, c) | ExprKind::Select(a, b, c) => SmallVec::from_slice(&[a, b, c]),
        }
    }

    /// The constant, when this is one.
    pub fn as_constant(&self) -> Option<Constant> {
        match self.kind() {
            ExprKind::Constant(constant) => Some(*constant),
            ExprKind::Index(index) => index.as_constant().map(Constant::Int),
            _ => None,
        }
    }
}

//! The functions as operations of the intermediate representation.

use super::{Arithmetic, Precision, cos, erf, exp, ln, rsqrt, sigmoid, sin, tanh};
use crate::dtype::DType;
use crate::expr::{BinaryOp, Expr, ExprKind, UnaryOp};

/// Expands one application of a transcendental function (`exp`, `ln`, `tanh`, `erf`, `sigmoid`, `sin`,
/// `cos`, `rsqrt`) into basic operations, and gives `None` for every other expression. The operand is not
/// looked into. `f16` and `bf16` are expanded in `f32` and rounded.
///
/// The result shares subexpressions heavily: walk it with a memo keyed by [`Expr::address`], or the
/// walk takes time exponential in the depth.
pub fn expand(expr: &Expr) -> Option<Expr> {
    let ExprKind::Unary(op, operand) = expr.kind() else { return None };
    let function = match op {
        UnaryOp::Exp => exp,
        UnaryOp::Ln => ln,
        UnaryOp::Tanh => tanh,
        UnaryOp::Erf => erf,
        UnaryOp::Sigmoid => sigmoid,
        UnaryOp::Sin => sin,
        UnaryOp::Cos => cos,
        UnaryOp::Rsqrt => rsqrt,
        _ => return None,
    };
    match expr.dtype() {
        DType::F32 | DType::F64 => Some(function(operand)),
        DType::F16 | DType::BF16 => {
            let wide = function(&Expr::cast(DType::F32, operand.clone()));
            Some(Expr::cast(expr.dtype(), wide))
        }
        _ => None,
    }
}

fn binary(op: BinaryOp, left: &Expr, right: &Expr) -> Expr {
    Expr::binary(op, left.clone(), right.clone())
}

fn bitcast(dtype: DType, operand: &Expr) -> Expr {
    Expr::new(dtype, ExprKind::Bitcast(operand.clone()))
}

/// Expressions of type `f32` and `f64`; integers are of type `i32` and `i64`.
impl Arithmetic for Expr {
    type Int = Expr;
    type Mask = Expr;

    fn precision(&self) -> Precision {
        if self.dtype() == DType::F64 { Precision::Double } else { Precision::Single }
    }
    fn constant(&self, value: f64) -> Self {
        Expr::float(self.dtype(), value)
    }
    fn integer(&self, value: i64) -> Expr {
        Expr::int(self.precision().pick(DType::I32, DType::I64), value)
    }
    fn add(&self, other: &Self) -> Self {
        binary(BinaryOp::Add, self, other)
    }
    fn sub(&self, other: &Self) -> Self {
        binary(BinaryOp::Sub, self, other)
    }
    fn mul(&self, other: &Self) -> Self {
        binary(BinaryOp::Mul, self, other)
    }
    fn div(&self, other: &Self) -> Self {
        binary(BinaryOp::Div, self, other)
    }
    fn mul_add(&self, factor: &Self, addend: &Self) -> Self {
        Expr::mul_add(self.clone(), factor.clone(), addend.clone())
    }
    fn neg(&self) -> Self {
        Expr::unary(UnaryOp::Neg, self.clone())
    }
    fn abs(&self) -> Self {
        Expr::unary(UnaryOp::Abs, self.clone())
    }
    fn sqrt(&self) -> Self {
        Expr::unary(UnaryOp::Sqrt, self.clone())
    }
    fn less(&self, other: &Self) -> Expr {
        binary(BinaryOp::Lt, self, other)
    }
    fn equal(&self, other: &Self) -> Expr {
        binary(BinaryOp::Eq, self, other)
    }
    fn is_zero(integer: &Expr) -> Expr {
        binary(BinaryOp::Eq, integer, &Expr::zero(integer.dtype()))
    }
    fn select(mask: &Expr, then: &Self, otherwise: &Self) -> Self {
        Expr::select(mask.clone(), then.clone(), otherwise.clone())
    }
    fn to_bits(&self) -> Expr {
        bitcast(self.precision().pick(DType::I32, DType::I64), self)
    }
    fn from_bits(bits: &Expr) -> Self {
        bitcast(if bits.dtype() == DType::I64 { DType::F64 } else { DType::F32 }, bits)
    }
    fn int_add(left: &Expr, right: &Expr) -> Expr {
        binary(BinaryOp::Add, left, right)
    }
    fn int_sub(left: &Expr, right: &Expr) -> Expr {
        binary(BinaryOp::Sub, left, right)
    }
    fn int_and(left: &Expr, right: &Expr) -> Expr {
        binary(BinaryOp::And, left, right)
    }
    fn int_xor(left: &Expr, right: &Expr) -> Expr {
        binary(BinaryOp::Xor, left, right)
    }
    fn int_shl(integer: &Expr, count: u32) -> Expr {
        binary(BinaryOp::Shl, integer, &Expr::int(integer.dtype(), i64::from(count)))
    }
    fn int_shr(integer: &Expr, count: u32) -> Expr {
        binary(BinaryOp::Shr, integer, &Expr::int(integer.dtype(), i64::from(count)))
    }
}

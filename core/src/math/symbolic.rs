//! The functions as operations of the intermediate representation.

use super::{Arithmetic, Precision};
use crate::dtype::DType;
use crate::expr::{BinaryOp, Expr, ExprKind, UnaryOp};

/// Expands one application of a [function](UnaryOp::is_function) into basic operations, and gives `None` for every other
/// expression. The operands are not looked into. `f16` and `bf16` are expanded in `f32` and rounded.
///
/// The result shares subexpressions heavily: walk it with a memo keyed by [`Expr::address`], or the
/// walk takes time exponential in the depth.
pub fn expand(expr: &Expr) -> Option<Expr> {
    let dtype = expr.dtype();
    if !dtype.is_float() {
        return None;
    }
    let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let operand = |operand: &Expr| Expr::cast(wide, operand.clone());
    let expanded = match expr.kind() {
        ExprKind::Unary(op, a) => expand_unary(*op, &operand(a))?,
        ExprKind::Binary(op, a, b) => expand_binary(*op, &operand(a), &operand(b))?,
        _ => return None,
    };
    Some(Expr::cast(dtype, expanded))
}

macro_rules! expand_unary {
    ({} $($(#[$doc:meta])* $variant:ident $name:ident $bounds:tt $kind:ident($count:literal);)*) => {
        fn expand_unary(op: UnaryOp, a: &Expr) -> Option<Expr> {
            match op {
                $(UnaryOp::$variant => Some(super::$name(a)),)*
                _ => None,
            }
        }
    };
}

macro_rules! expand_binary {
    ({} $($(#[$doc:meta])* $variant:ident $name:ident $bounds:tt $kind:ident($count:literal);)*) => {
        fn expand_binary(op: BinaryOp, a: &Expr, b: &Expr) -> Option<Expr> {
            match op {
                $(BinaryOp::$variant => Some(super::$name(a, b)),)*
                _ => None,
            }
        }
    };
}

tilewright_vocabulary::unary_functions!(expand_unary {});
tilewright_vocabulary::binary_functions!(expand_binary {});

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

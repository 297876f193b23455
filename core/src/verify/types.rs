//! The operand types that each operation takes, and the type of its result.

use crate::dtype::DType;
use crate::expr::{BinaryOp, Constant, Expr, ExprKind, UnaryOp};

/// A type error of one expression node whose operands are well typed.
pub(super) fn type_error(expr: &Expr) -> Option<String> {
    let dtype = expr.dtype();
    match expr.kind() {
        ExprKind::Constant(constant) => constant_error(dtype, *constant),
        ExprKind::Index(_) => (dtype != DType::I64).then(|| format!("an index is i64, not {dtype}")),
        ExprKind::Scalar(_) | ExprKind::Load(..) => None,
        ExprKind::Unary(op, a) => unary_error(*op, a.dtype(), dtype),
        ExprKind::Binary(op, a, b) => binary_error(*op, a.dtype(), b.dtype(), dtype),
        ExprKind::MulAdd(a, b, c) => {
            let wrong = [a, b, c].iter().any(|operand| operand.dtype() != dtype)
                || !dtype.is_float()
                || dtype.is_storage_only();
            wrong.then(|| {
                format!(
                    "`mul_add` needs floats of one type, not {}, {} and {} giving {dtype}",
                    a.dtype(),
                    b.dtype(),
                    c.dtype()
                )
            })
        }
        ExprKind::Select(condition, a, b) => select_error(condition.dtype(), a.dtype(), b.dtype(), dtype),
        ExprKind::Cast(_) => {
            (dtype == DType::Bool).then(|| "a cast cannot give bool; compare with zero instead".to_owned())
        }
        ExprKind::Bitcast(a) => (a.dtype().bits() != dtype.bits())
            .then(|| format!("`bitcast` needs types of one size, not {} and {dtype}", a.dtype())),
        ExprKind::Bounded(a, _) => (a.dtype() != dtype || !dtype.is_int() || dtype.is_storage_only())
            .then(|| format!("`bounded` needs an integer, not {} giving {dtype}", a.dtype())),
    }
}

fn constant_error(dtype: DType, constant: Constant) -> Option<String> {
    match constant {
        Constant::Int(_) if dtype.is_float() => {
            Some(format!("an integer constant cannot be of type {dtype}"))
        }
        Constant::Int(value) => {
            (dtype.wrap(value) != value).then(|| format!("the constant {value} is no value of {dtype}"))
        }
        Constant::Float(_) if !dtype.is_float() => {
            Some(format!("a floating-point constant cannot be of type {dtype}"))
        }
        Constant::Float(bits) => {
            let value = f64::from_bits(bits);
            let exact = value.is_nan() || Expr::float(dtype, value).as_constant() == Some(constant);
            (!exact).then(|| format!("the constant {value:?} is not rounded to {dtype}"))
        }
    }
}

fn unary_error(op: UnaryOp, operand: DType, result: DType) -> Option<String> {
    let text = op.text();
    if !op.operands().accept(operand) {
        return Some(format!("`{text}` needs {}, not {operand}", op.operands().describe()));
    }
    (operand != result).then(|| format!("`{text}` of {operand} cannot give {result}"))
}

fn binary_error(op: BinaryOp, left: DType, right: DType, result: DType) -> Option<String> {
    let text = op.text();
    if left != right {
        return Some(format!("`{text}` needs operands of one type, not {left} and {right}"));
    }
    if !op.operands().accept(left) {
        return Some(format!("`{text}` needs {}, not {left}", op.operands().describe()));
    }
    let expected = if op.is_comparison() { DType::Bool } else { left };
    (result != expected).then(|| format!("`{text}` of {left} gives {expected}, not {result}"))
}

fn select_error(condition: DType, then: DType, otherwise: DType, result: DType) -> Option<String> {
    if condition != DType::Bool {
        return Some(format!("the condition of `select` must be bool, not {condition}"));
    }
    (then != otherwise || then != result)
        .then(|| format!("the branches of `select` must be of one type, not {then} and {otherwise}"))
}

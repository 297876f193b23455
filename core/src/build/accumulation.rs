//! Recognising `x = x + a` and its relatives as accumulations.

use super::statement::Effect;
use crate::dtype::DType;
use crate::expr::{BinaryOp, Constant, Expr, ExprKind, UnaryOp};

/// The accumulation onto the old value that an assigned value amounts to: `x + a`, `a + x`, `x - a`,
/// `(x + a) + b`, `x.max(a)`, `a.mul_add(b, x)`, `if c { x + a } else { x }`, `if a > x { a } else { x }`,
/// `x || a`, …. `is_old` tells the old value, which may occur only once.
pub(super) fn recognise(value: &Expr, is_old: &dyn Fn(&Expr) -> bool) -> Option<Effect> {
    let free = |expr: &Expr| !mentions_old(expr, is_old);
    match value.kind() {
        ExprKind::Binary(op, a, b) if is_commutative(*op) => {
            let (old, rest) = if free(b) {
                (a, b)
            } else if free(a) {
                (b, a)
            } else {
                return None;
            };
            if is_old(old) {
                return Some(Effect::Combine(*op, rest.clone()));
            }
            match recognise(old, is_old)? {
                Effect::Combine(inner, part) if inner == *op => {
                    Some(Effect::Combine(*op, Expr::binary(*op, part, rest.clone())))
                }
                _ => None,
            }
        }
        ExprKind::Binary(BinaryOp::Sub, a, b) if free(b) => {
            if is_old(a) {
                return Some(Effect::Combine(BinaryOp::Add, Expr::unary(UnaryOp::Neg, b.clone())));
            }
            match recognise(a, is_old)? {
                Effect::Combine(BinaryOp::Add, part) => {
                    Some(Effect::Combine(BinaryOp::Add, Expr::binary(BinaryOp::Sub, part, b.clone())))
                }
                _ => None,
            }
        }
        ExprKind::MulAdd(a, b, c) if is_old(c) && free(a) && free(b) => {
            Some(Effect::MulAdd(a.clone(), b.clone()))
        }
        ExprKind::Select(condition, then, otherwise) => {
            recognise_select(condition, then, otherwise, is_old, &free)
        }
        _ => None,
    }
}

fn recognise_select(
    condition: &Expr,
    then: &Expr,
    otherwise: &Expr,
    is_old: &dyn Fn(&Expr) -> bool,
    free: &dyn Fn(&Expr) -> bool,
) -> Option<Effect> {
    if let Some(effect) = recognise_logic(condition, then, otherwise, is_old, free) {
        return Some(effect);
    }
    if let Some(effect) = recognise_extremum(condition, then, otherwise, is_old, free) {
        return Some(effect);
    }
    if !free(condition) {
        return None;
    }
    if is_old(otherwise) {
        return Some(recognise(then, is_old)?.contribute_if(condition));
    }
    if is_old(then) {
        let not = Expr::unary(UnaryOp::Not, condition.clone());
        return Some(recognise(otherwise, is_old)?.contribute_if(&not));
    }
    None
}

/// `x || a` and `x && a`, whose right side is only evaluated when it matters.
fn recognise_logic(
    condition: &Expr,
    then: &Expr,
    otherwise: &Expr,
    is_old: &dyn Fn(&Expr) -> bool,
    free: &dyn Fn(&Expr) -> bool,
) -> Option<Effect> {
    if then.dtype() != DType::Bool || !is_old(condition) {
        return None;
    }
    match (then.as_constant(), otherwise.as_constant()) {
        (Some(Constant::Int(1)), _) if free(otherwise) => {
            Some(Effect::Combine(BinaryOp::Or, otherwise.clone()))
        }
        (_, Some(Constant::Int(0))) if free(then) => Some(Effect::Combine(BinaryOp::And, then.clone())),
        _ => None,
    }
}

/// `if a > x { a } else { x }` and the like.
fn recognise_extremum(
    condition: &Expr,
    then: &Expr,
    otherwise: &Expr,
    is_old: &dyn Fn(&Expr) -> bool,
    free: &dyn Fn(&Expr) -> bool,
) -> Option<Effect> {
    let ExprKind::Binary(comparison, left, right) = condition.kind() else { return None };
    let greater = match comparison {
        BinaryOp::Gt | BinaryOp::Ge => true,
        BinaryOp::Lt | BinaryOp::Le => false,
        _ => return None,
    };
    let new = if is_old(left) { right } else { left };
    if !free(new) || !(is_old(left) || is_old(right)) {
        return None;
    }
    let chosen_new = then == new && is_old(otherwise);
    let chosen_old = is_old(then) && otherwise == new;
    if !chosen_new && !chosen_old {
        return None;
    }
    // The larger one is chosen when the side that is chosen is the one that the comparison finds larger.
    let larger = if greater { left } else { right };
    let op = if (larger == new) == chosen_new { BinaryOp::Max } else { BinaryOp::Min };
    Some(Effect::Combine(op, new.clone()))
}

const fn is_commutative(op: BinaryOp) -> bool {
    matches!(
        op,
        BinaryOp::Add
            | BinaryOp::Mul
            | BinaryOp::Min
            | BinaryOp::Max
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
    )
}

fn mentions_old(expr: &Expr, is_old: &dyn Fn(&Expr) -> bool) -> bool {
    is_old(expr) || expr.operands().into_iter().any(|operand| mentions_old(operand, is_old))
}

//! Recognises `x = x + a` and its variants as accumulations.

use crate::build::statement::Effect;
use crate::dtype::DType;
use crate::expr::{BinaryOp, Constant, Expr, ExprKind, UnaryOp};

/// The accumulation onto the old value that an assigned value amounts to: `x + a`, `a + x`, `x - a`,
/// `(x + a) + b`, `x.max(a)`, `a.mul_add(b, x)`, `if c { x + a } else { x }`, `if a > x { a } else { x }`,
/// `x || a`, …. `is_old` tells the old value, which may occur only once.
pub(in crate::build) fn recognise(value: &Expr, is_old: &dyn Fn(&Expr) -> bool) -> Option<Effect> {
    let free = |expr: &Expr| !mentions_old(expr, is_old);
    match value.kind() {
        ExprKind::Binary(op, a, b) if op.is_associative() => {
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

/// The accumulation that `if condition { x = value }` amounts to: `if a > x { x = a }` and the like.
pub(in crate::build) fn recognise_assignment(
    condition: &Expr,
    value: &Expr,
    is_old: &dyn Fn(&Expr) -> bool,
) -> Option<Effect> {
    let ExprKind::Binary(_, left, right) = condition.kind() else { return None };
    let old = [left, right].into_iter().find(|operand| is_old(operand))?;
    let free = |expr: &Expr| !mentions_old(expr, is_old);
    recognise_extremum(condition, value, old, is_old, &free)
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
    // `if x >= a { x } else { a }` takes a NaN, which `max` ignores.
    let chosen_old = is_old(then) && otherwise == new && !new.dtype().is_float();
    if !chosen_new && !chosen_old {
        return None;
    }
    // The larger one is chosen when the side that is chosen is the one that the comparison finds larger.
    let larger = if greater { left } else { right };
    let op = if (larger == new) == chosen_new { BinaryOp::Max } else { BinaryOp::Min };
    Some(Effect::Combine(op, new.clone()))
}

fn mentions_old(expr: &Expr, is_old: &dyn Fn(&Expr) -> bool) -> bool {
    is_old(expr) || expr.operands().into_iter().any(|operand| mentions_old(operand, is_old))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::BufferId;
    use crate::index::Index;

    fn load(dtype: DType, buffer: u32) -> Expr {
        Expr::load(dtype, BufferId(buffer), [Index::constant(0)])
    }

    /// The old value is buffer 0; everything else is new.
    #[track_caller]
    fn check(value: Expr, expected: Option<Effect>) {
        let old = |expr: &Expr| matches!(expr.kind(), ExprKind::Load(BufferId(0), _));
        assert_eq!(recognise(&value, &old), expected, "{value:?}");
    }

    #[test]
    fn sums_in_any_order() {
        let [x, a, b] = [0, 1, 2].map(|buffer| load(DType::F32, buffer));
        let sum = |a: &Expr, b: &Expr| Expr::binary(BinaryOp::Add, a.clone(), b.clone());
        let difference = |a: &Expr, b: &Expr| Expr::binary(BinaryOp::Sub, a.clone(), b.clone());
        let add = |value: Expr| Some(Effect::Combine(BinaryOp::Add, value));
        check(sum(&x, &a), add(a.clone()));
        check(sum(&a, &x), add(a.clone()));
        check(sum(&sum(&x, &a), &b), add(sum(&a, &b)));
        check(sum(&b, &sum(&a, &x)), add(sum(&a, &b)));
        check(difference(&x, &a), add(Expr::unary(UnaryOp::Neg, a.clone())));
        check(difference(&sum(&x, &a), &b), add(difference(&a, &b)));
        check(Expr::mul_add(a.clone(), b.clone(), x.clone()), Some(Effect::MulAdd(a.clone(), b.clone())));
        check(difference(&a, &x), None);
        check(sum(&x, &x), None);
        check(sum(&Expr::binary(BinaryOp::Mul, x.clone(), a.clone()), &b), None);
        check(Expr::mul_add(x.clone(), a.clone(), b.clone()), None);
        check(a, None);
    }

    #[test]
    fn extrema_written_as_comparisons() {
        for dtype in [DType::F32, DType::I32] {
            let [x, a] = [0, 1].map(|buffer| load(dtype, buffer));
            let choose = |op: BinaryOp, left: &Expr, right: &Expr, then: &Expr, otherwise: &Expr| {
                let condition = Expr::binary(op, left.clone(), right.clone());
                Expr::select(condition, then.clone(), otherwise.clone())
            };
            let max = Some(Effect::Combine(BinaryOp::Max, a.clone()));
            let min = Some(Effect::Combine(BinaryOp::Min, a.clone()));
            check(choose(BinaryOp::Gt, &a, &x, &a, &x), max.clone());
            check(choose(BinaryOp::Lt, &x, &a, &a, &x), max.clone());
            check(choose(BinaryOp::Lt, &a, &x, &a, &x), min.clone());
            check(choose(BinaryOp::Gt, &x, &a, &a, &x), min.clone());
            // Where the new value is what remains, a NaN would be taken.
            let exact = |effect: Option<Effect>| effect.filter(|_| dtype == DType::I32);
            check(choose(BinaryOp::Ge, &x, &a, &x, &a), exact(max.clone()));
            check(choose(BinaryOp::Le, &a, &x, &x, &a), exact(max));
            check(choose(BinaryOp::Le, &x, &a, &x, &a), exact(min));
            check(choose(BinaryOp::Eq, &x, &a, &x, &a), None);
        }
    }

    #[test]
    fn conditions_and_logic() {
        let [x, a] = [0, 1].map(|buffer| load(DType::F32, buffer));
        let [old, mask] = [0, 1].map(|buffer| load(DType::Bool, buffer));
        let sum = Expr::binary(BinaryOp::Add, x.clone(), a.clone());
        let guarded = Expr::select(mask.clone(), a.clone(), Expr::zero(DType::F32));
        check(
            Expr::select(mask.clone(), sum.clone(), x.clone()),
            Some(Effect::Combine(BinaryOp::Add, guarded)),
        );
        check(Expr::select(mask.clone(), sum, a), None);
        check(
            Expr::select(old.clone(), Expr::bool(true), mask.clone()),
            Some(Effect::Combine(BinaryOp::Or, mask.clone())),
        );
        check(
            Expr::select(old.clone(), mask.clone(), Expr::bool(false)),
            Some(Effect::Combine(BinaryOp::And, mask.clone())),
        );
        check(Expr::binary(BinaryOp::Xor, mask.clone(), old), Some(Effect::Combine(BinaryOp::Xor, mask)));
    }
}

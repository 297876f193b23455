//! Conditions on loops and dimensions, as differences.
//!
//! A comparison of indices is kept as one difference that is negative exactly when it holds, so that
//! `a < b`, `b > a` and `a - b + 1 <= 0` are handled alike.

use crate::analysis::access::loads_anything;
use crate::dtype::DType;
use crate::expr::{BinaryOp, Expr, ExprKind};
use crate::ids::VarId;
use crate::index::Index;
use crate::simplify::may_fail;
use crate::visit::for_each_var;

/// The difference that is negative exactly when an ordering of indices holds. `None` for other
/// conditions and for those that read memory.
pub(crate) fn difference(condition: &Expr) -> Option<Index> {
    let ExprKind::Binary(op, left, right) = condition.kind() else { return None };
    if left.dtype() != DType::I64 || !is_movable(condition) {
        return None;
    }
    let (left, right) = (Index::value(left.clone()), Index::value(right.clone()));
    match op {
        BinaryOp::Lt => Some(&left - &right),
        BinaryOp::Le => Some((&left - &right).offset(-1)),
        BinaryOp::Gt => Some(&right - &left),
        BinaryOp::Ge => Some((&right - &left).offset(-1)),
        _ => None,
    }
}

/// Whether a condition depends on loops and dimensions only, so that it may be decided elsewhere.
pub(crate) fn is_movable(condition: &Expr) -> bool {
    !loads_anything(condition) && !may_fail(condition)
}

/// Whether an expression mentions a variable, also inside indices.
pub(crate) fn mentions(expr: &Expr, var: VarId) -> bool {
    let mut found = false;
    for_each_var(expr, &mut |other| found |= other == var);
    found
}

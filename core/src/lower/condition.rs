//! Conditions on loops and dimensions, taken apart into comparisons.
//!
//! A comparison of indices is kept as one difference that is negative exactly when it holds, so that
//! `a < b`, `b > a` and `a - b + 1 <= 0` are handled alike.

use crate::dtype::DType;
use crate::expr::{BinaryOp, Expr, ExprKind};
use crate::ids::VarId;
use crate::index::{Index, Ranges, Term};
use crate::lower::access::loads_anything;
use crate::simplify::may_fail;
use crate::stmt::{For, If, Stmt};
use crate::visit::for_each_var;

/// The difference that is negative exactly when an ordering of indices holds. `None` for other
/// conditions and for those that read memory.
pub(super) fn difference(condition: &Expr) -> Option<Index> {
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

/// The condition that an index is negative, written with positive terms on both sides.
pub(super) fn is_negative(index: &Index) -> Expr {
    let positive = |term: &&Term| term.coefficient > 0;
    let constant = index.constant_part();
    let left = Index::from_terms(index.terms().iter().filter(positive).cloned(), constant.max(0));
    let right = &left - index;
    Expr::binary(BinaryOp::Lt, Expr::index(left), Expr::index(right))
}

/// Whether a condition depends on loops and dimensions only, so that it may be decided elsewhere.
pub(super) fn is_movable(condition: &Expr) -> bool {
    !loads_anything(condition) && !may_fail(condition)
}

/// Whether an expression mentions a variable, also inside indices.
pub(super) fn mentions(expr: &Expr, var: VarId) -> bool {
    let mut found = false;
    for_each_var(expr, &mut |other| found |= other == var);
    found
}

/// The conditional, when the statement does nothing but guard another by a movable condition.
pub(super) fn guard(stmt: &Stmt) -> Option<&If> {
    match stmt {
        Stmt::If(node) if node.otherwise.is_none() && is_movable(&node.condition) => Some(node),
        _ => None,
    }
}

/// The conditions of the guards around a statement, outermost first, and the statement.
pub(super) fn peel_guards(stmt: &Stmt) -> (Vec<Expr>, &Stmt) {
    let (mut conditions, mut body) = (Vec::new(), stmt);
    while let Some(node) = guard(body) {
        conditions.push(node.condition.clone());
        body = &node.then;
    }
    (conditions, body)
}

/// A statement under guards, the first outermost.
pub(super) fn under_guards(
    conditions: impl IntoIterator<Item = Expr, IntoIter: DoubleEndedIterator>,
    body: Stmt,
) -> Stmt {
    conditions.into_iter().rev().fold(body, |body, condition| Stmt::when(condition, body))
}

/// Whether a loop has an iteration whenever it is reached, with the loops around it running. One that
/// does not is a guard in disguise: what is in its body may only be done there.
pub(super) fn always_runs(node: &For, around: &Ranges) -> bool {
    node.extent.offset(-1).is_provably_nonnegative(around)
}

/// The statement under the condition that a loop has an iteration, unless it always has one.
pub(super) fn when_runs(node: &For, around: &Ranges, stmt: Stmt) -> Stmt {
    if always_runs(node, around) { stmt } else { Stmt::when(is_negative(&node.extent.scale(-1)), stmt) }
}

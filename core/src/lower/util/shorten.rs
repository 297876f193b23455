//! Loops shortened by the guards of their bodies.

use std::sync::Arc;

use crate::analysis::condition::difference;
use crate::index::Index;
use crate::lower::util::condition::{peel_guards, under_guards};
use crate::lower::util::prune::without;
use crate::stmt::{For, LoopKind, Stmt};
use crate::visit::substitute_stmt;

/// The lengths to which serial loops are shortened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::lower) enum Lengths {
    /// Constant lengths: a length that is not yet decided may still turn out not to bind.
    Constant,
    /// Any length.
    Any,
}

/// Shortens the loops inside a statement.
pub(in crate::lower) fn clamp(stmt: &mut Stmt, lengths: Lengths) {
    shorten(stmt, lengths);
    // A loop that runs once is replaced by its body for that one iteration, in which loops that were
    // shortened before may have none.
    if let Some(rest) = without(stmt, &never_iterates) {
        *stmt = rest;
    }
}

fn never_iterates(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::For(node) if node.extent.as_constant().is_some_and(|extent| extent < 1))
}

fn shorten(stmt: &mut Stmt, lengths: Lengths) {
    if let Stmt::Intrinsic(_) = stmt {
        // Its loops belong to the instruction.
        return;
    }
    for child in stmt.children_mut() {
        shorten(child, lengths);
    }
    if let Stmt::For(node) = stmt
        && let Some(shorter) = shortened(node, lengths)
    {
        *stmt = shorter;
    }
}

fn shortened(node: &For, lengths: Lengths) -> Option<Stmt> {
    if let LoopKind::Bound(_) = node.kind {
        // The schedule decides the number of threads.
        return None;
    }
    let takes_any = node.kind == LoopKind::Serial && lengths == Lengths::Any;
    let (conditions, body) = peel_guards(&node.body);
    let (mut first, mut end, mut kept) = (0, node.extent.clone(), Vec::new());
    for condition in conditions {
        let difference = difference(&condition);
        let limit = difference.as_ref().and_then(|difference| limit_of(difference, node));
        let start = difference.as_ref().and_then(|difference| start_of(difference, node));
        match (limit.map(|limit| end.minimum(&limit)), start) {
            (Some(shorter), _) if shorter.as_constant().is_some() || takes_any => end = shorter,
            (None, Some(start)) => first = first.max(start),
            _ => kept.push(condition),
        }
    }
    if first == 0 && end == node.extent {
        return None;
    }
    let extent = end.offset(-first);
    if extent.as_constant().is_some_and(|extent| extent < 1) {
        return Some(Stmt::nothing());
    }
    let mut body = under_guards(kept, body.clone());
    if first > 0 {
        let later = Index::var(node.var).offset(first);
        substitute_stmt(&mut body, &|var| (var == node.var).then(|| later.clone()));
    }
    Some(loop_over(For { extent, body, ..node.clone() }))
}

/// The loop, or only its body when that runs once.
pub(in crate::lower) fn loop_over(mut node: For) -> Stmt {
    if !node.extent.is(1) {
        return Stmt::For(Arc::new(node));
    }
    substitute_stmt(&mut node.body, &|var| (var == node.var).then(|| Index::constant(0)));
    node.body
}

/// The first iteration for which the difference is negative, when it is so for all after it, and the number is known.
fn start_of(difference: &Index, node: &For) -> Option<i64> {
    let coefficient = difference.linear_coefficient(node.var).filter(|coefficient| *coefficient < 0)?;
    let rest = difference.add_scaled(&Index::var(node.var), -coefficient).as_constant()?;
    Some(rest.div_euclid(coefficient.checked_neg()?).saturating_add(1).max(0))
}

/// The number of iterations for which the difference is negative, when these are the first ones.
fn limit_of(difference: &Index, node: &For) -> Option<Index> {
    let coefficient = difference.linear_coefficient(node.var).filter(|coefficient| *coefficient > 0)?;
    let rest = difference.add_scaled(&Index::var(node.var), -coefficient);
    Some(rest.scale(-1).ceil_div(coefficient))
}

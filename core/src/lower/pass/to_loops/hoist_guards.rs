//! Moves guards as far out as possible: a condition on outer loops is evaluated once, not in each iteration.
//!
//! ```text
//! for i { for j { if i < M & j < N { … } } }
//! for i { if i < M { for j { if j < N { … } } } }
//! ```
//!
//! Only conditions that read no memory move; moving them past each other and out of loops changes
//! nothing, whatever the number of iterations.

use std::sync::Arc;

use crate::analysis::condition::{is_movable, mentions};
use crate::expr::{BinaryOp, Expr, ExprKind};
use crate::lower::util::condition::{guard, peel_guards, under_guards};
use crate::lower::{LowerError, LowerOptions};
use crate::program::Program;
use crate::stmt::{For, Stmt};

/// Moves conditionals out of the loops that they do not depend on.
pub(in crate::lower) fn hoist_guards(program: &mut Program, _: &LowerOptions) -> Result<(), LowerError> {
    hoist(&mut program.body);
    Ok(())
}

fn hoist(stmt: &mut Stmt) {
    for child in stmt.children_mut() {
        hoist(child);
    }
    match stmt {
        Stmt::Seq(stmts) => {
            if let Some(merged) = merge_equal_guards(stmts) {
                *stmt = merged;
            }
        }
        Stmt::If(node) if node.otherwise.is_none() => {
            if let Some(parts) = conjunction(&node.condition) {
                *stmt = under_guards(parts, node.then.clone());
            }
        }
        Stmt::For(node) if guard(&node.body).is_some() => *stmt = hoist_out_of(node),
        _ => {}
    }
}

/// The parts of a movable conjunction; `None` when there is only one.
fn conjunction(condition: &Expr) -> Option<Vec<Expr>> {
    fn collect(condition: &Expr, parts: &mut Vec<Expr>) {
        match condition.kind() {
            ExprKind::Binary(BinaryOp::And, left, right) => {
                collect(left, parts);
                collect(right, parts);
            }
            _ => parts.push(condition.clone()),
        }
    }
    let mut parts = Vec::new();
    collect(condition, &mut parts);
    (parts.len() > 1 && is_movable(condition)).then_some(parts)
}

fn hoist_out_of(node: &For) -> Stmt {
    let (conditions, body) = peel_guards(&node.body);
    let (inner, outer): (Vec<Expr>, Vec<Expr>) =
        conditions.into_iter().partition(|condition| mentions(condition, node.var));
    let body = under_guards(inner, body.clone());
    let moved = Stmt::For(Arc::new(For { body, ..For::clone(node) }));
    under_guards(outer, moved)
}

/// Neighbours under the same condition become one conditional. `None` when there are none.
fn merge_equal_guards(stmts: &[Stmt]) -> Option<Stmt> {
    let mut merged: Vec<Stmt> = Vec::with_capacity(stmts.len());
    for stmt in stmts {
        match merged.last().and_then(|before| join_guards(before, stmt)) {
            Some(joined) => {
                merged.pop();
                merged.push(joined);
            }
            None => merged.push(stmt.clone()),
        }
    }
    (merged.len() < stmts.len()).then(|| Stmt::seq(merged))
}

fn join_guards(before: &Stmt, next: &Stmt) -> Option<Stmt> {
    let (before, next) = (guard(before)?, guard(next)?);
    if before.condition != next.condition {
        return None;
    }
    let then = Stmt::seq([before.then.clone(), next.then.clone()]);
    let merged = match &then {
        Stmt::Seq(stmts) => merge_equal_guards(stmts),
        _ => None,
    };
    Some(Stmt::when(next.condition.clone(), merged.unwrap_or(then)))
}

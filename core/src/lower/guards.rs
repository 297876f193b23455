//! Guards as far out as possible: a condition on outer loops is decided once, not in each iteration.
//!
//! ```text
//! for i { for j { if i < M { if j < N { … } } } }
//! for i { if i < M { for j { if j < N { … } } } }
//! ```
//!
//! Only conditions that read no memory move; moving them past each other and out of loops changes
//! nothing, whatever the number of iterations.

use std::sync::Arc;

use crate::expr::Expr;
use crate::ids::VarId;
use crate::lower::access::loads_anything;
use crate::lower::{LowerError, LowerOptions};
use crate::program::Program;
use crate::simplify::may_fail;
use crate::stmt::{For, If, Stmt};
use crate::visit::for_each_var;

/// Moves conditionals out of the loops that they do not depend on.
pub(super) fn hoist_guards(program: &mut Program, _: &LowerOptions) -> Result<(), LowerError> {
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
        Stmt::For(node) if guard(&node.body).is_some() => *stmt = hoist_out_of(node),
        _ => {}
    }
}

/// The conditional, when the statement is one that may move.
fn guard(stmt: &Stmt) -> Option<&If> {
    match stmt {
        Stmt::If(node) if node.otherwise.is_none() && is_movable(&node.condition) => Some(node),
        _ => None,
    }
}

/// Whether a condition depends on loops and dimensions only.
pub(super) fn is_movable(condition: &Expr) -> bool {
    !loads_anything(condition) && !may_fail(condition)
}

pub(super) fn mentions(expr: &Expr, var: VarId) -> bool {
    let mut found = false;
    for_each_var(expr, &mut |other| found |= other == var);
    found
}

fn hoist_out_of(node: &For) -> Stmt {
    let (mut outer, mut inner) = (Vec::new(), Vec::new());
    let mut body = &node.body;
    while let Some(next) = guard(body) {
        let stays = mentions(&next.condition, node.var);
        if stays { &mut inner } else { &mut outer }.push(next.condition.clone());
        body = &next.then;
    }
    let body = under(inner, body.clone());
    let moved = Stmt::For(Arc::new(For { body, ..For::clone(node) }));
    under(outer, moved)
}

fn under(conditions: Vec<Expr>, body: Stmt) -> Stmt {
    conditions.into_iter().rev().fold(body, |body, condition| Stmt::when(condition, body))
}

/// Neighbours under the same condition become one conditional. `None` when there are none.
fn merge_equal_guards(stmts: &[Stmt]) -> Option<Stmt> {
    let mut merged: Vec<Stmt> = Vec::with_capacity(stmts.len());
    for stmt in stmts {
        let joined = match (merged.last().and_then(guard), guard(stmt)) {
            (Some(before), Some(next)) if before.condition == next.condition => {
                let mut then = Stmt::seq([before.then.clone(), next.then.clone()]);
                if let Stmt::Seq(stmts) = &then
                    && let Some(inner) = merge_equal_guards(stmts)
                {
                    then = inner;
                }
                Some(Stmt::when(next.condition.clone(), then))
            }
            _ => None,
        };
        match joined {
            Some(joined) => {
                merged.pop();
                merged.push(joined);
            }
            None => merged.push(stmt.clone()),
        }
    }
    (merged.len() < stmts.len()).then(|| Stmt::seq(merged))
}

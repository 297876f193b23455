//! Guards on a loop's own variable become a shorter loop.
//!
//! ```text
//! for i in 0..8 { if 8·t + i < M { … } }
//! for i in 0..min(8, M - 8·t) { … }
//!
//! for i in 0..8 { if i >= 2 { … i … } }
//! for i in 0..6 { … i + 2 … }
//! ```
//!
//! A loop that is vectorized or unrolled is shortened only to a constant number of iterations; a
//! serial one to any, also to a negative one, which is none.

use std::sync::Arc;

use crate::index::{Index, Ranges};
use crate::lower::condition::{difference, peel_guards, under_guards};
use crate::lower::prune::without;
use crate::lower::unreached::remove_unreached;
use crate::lower::{LowerError, LowerOptions};
use crate::program::Program;
use crate::simplify::simplify_stmt;
use crate::stmt::{For, LoopKind, Stmt};
use crate::visit::substitute_stmt;

/// Shortens loops by the guards of their bodies.
pub(super) fn clamp_loops(program: &mut Program, _: &LowerOptions) -> Result<(), LowerError> {
    simplify_stmt(&mut program.body, &Ranges::new());
    clamp(&mut program.body, Lengths::Any);
    remove_unreached(program);
    Ok(())
}

/// To which lengths serial loops are shortened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lengths {
    /// Constant ones: what is not yet decided may still turn out not to bind.
    Constant,
    /// Any.
    Any,
}

/// Shortens the loops inside a statement.
pub(super) fn clamp(stmt: &mut Stmt, lengths: Lengths) {
    shorten(stmt, lengths);
    // In the place of a loop that runs once stands its body for that one iteration, in which loops that were
    // shortened before it may have none.
    if let Some(rest) = without(stmt, &never_iterates) {
        *stmt = rest;
    }
}

fn never_iterates(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::For(node) if node.extent.as_constant().is_some_and(|extent| extent < 1))
}

fn shorten(stmt: &mut Stmt, lengths: Lengths) {
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
pub(super) fn loop_over(mut node: For) -> Stmt {
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

#[cfg(test)]
mod tests {
    use super::clamp_loops;
    use crate::lower::LowerOptions;
    use crate::program::Program;

    fn clamped(text: &str) -> String {
        let mut program: Program = text.parse().unwrap();
        clamp_loops(&mut program, &LowerOptions::default()).unwrap();
        program.to_string()
    }

    #[test]
    fn a_loop_without_iterations_inside_of_one_that_runs_once_disappears() {
        let found = clamped(
            "kernel k(N, in x: f32[16], out y: f32[16]) {
  for a in 0..2 {
    if a >= 1 {
      for b in 0..8 {
        if a*8 + b < 5 {
          y[a*8 + b] = 0.0
        }
      }
      for b in 0..8 {
        y[a*8 + b] = x[a*8 + b]
      }
    }
  }
}
",
        );
        assert!(!found.contains("0.0"), "{found}");
        assert!(found.contains("y[b + 8] = x[b + 8]"), "{found}");
    }
}

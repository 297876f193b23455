//! Turns selections between computed values into conditionals, outside of the loops that their conditions do not depend on (loop
//! unswitching).
//!
//! ```text
//! for i { for j { y[i, j] = select(i < 4, a[i, j], b[i - 4, j]) } }
//! for i { if i < 4 { for j { y[i, j] = a[i, j] } } else { for j { y[i, j] = b[i - 4, j] } } }
//! ```
//!
//! Concatenations are such selections. Evaluated as they stand, each element costs a masked load of every part, and one of them lies
//! outside of its part: where no page is mapped there, a processor takes hundreds of cycles to find that no lane wants it.
//!
//! Selections of a constant, as of padding, stay: [peel_boundaries](super::peel_boundaries) takes the interior apart from the boundary, and
//! backends select an address. Updates of sums stay, because their accumulators are registers of the loops around the test.

use std::sync::Arc;

use crate::analysis::access::loads_anything;
use crate::analysis::block::reduction_of;
use crate::analysis::condition::{is_movable, mentions};
use crate::expr::{Expr, ExprKind};
use crate::ids::VarId;
use crate::lower::util::comparison::written_out_size;
use crate::lower::util::condition::guard;
use crate::lower::util::copy::copy;
use crate::lower::{LowerError, LowerOptions};
use crate::program::Program;
use crate::stmt::{For, If, LoopKind, Stmt, Store};
use crate::visit::{for_each_expr, rewrite_expr};

/// Turns selections between computed values into conditionals.
pub(in crate::lower) fn unswitch_selections(
    program: &mut Program,
    options: &LowerOptions,
) -> Result<(), LowerError> {
    let body = std::mem::replace(&mut program.body, Stmt::nothing());
    let budget = options.max_partition_statements;
    let unswitched = Unswitcher { program, lanes: Vec::new(), budget }.stmt(&body);
    program.body = unswitched.unwrap_or(body);
    Ok(())
}

/// The most selections of one store that become conditionals.
const MOST_SIDES: usize = 128;

struct Unswitcher<'p> {
    program: &'p mut Program,
    /// The loops around the current statement that become lanes.
    lanes: Vec<VarId>,
    /// How many more statements may be made.
    budget: usize,
}

impl Unswitcher<'_> {
    /// `None` when the statement stays as it is.
    fn stmt(&mut self, stmt: &Stmt) -> Option<Stmt> {
        match stmt {
            Stmt::Store(node) if may_be_split(node) => {
                split(node, &self.lanes, &mut MOST_SIDES.min(self.budget))
            }
            Stmt::For(node) => self.nest(node),
            Stmt::If(node) if guard(stmt).is_some() => {
                self.stmt(&node.then).map(|then| guarded(&node.condition, then))
            }
            _ => {
                let new: Vec<Option<Stmt>> =
                    stmt.children().into_iter().map(|child| self.stmt(child)).collect();
                if new.iter().all(Option::is_none) {
                    return None;
                }
                let mut edited = stmt.clone();
                for (child, new) in edited.children_mut().into_iter().zip(new) {
                    if let Some(new) = new {
                        *child = new;
                    }
                }
                Some(edited)
            }
        }
    }

    /// A loop with the tests in its body before it, where they do not depend on the loop; `None` when it stays as it is.
    fn nest(&mut self, node: &Arc<For>) -> Option<Stmt> {
        let before = self.budget;
        let is_vectorized = node.kind == LoopKind::Vectorized;
        self.lanes.extend(is_vectorized.then_some(node.var));
        let body = self.stmt(&node.body);
        self.lanes.truncate(self.lanes.len() - usize::from(is_vectorized));
        let body = body?;
        let nest = match node.kind {
            // Iterations of these loops share what stands before them.
            LoopKind::Parallel | LoopKind::Bound(_) => with_body(node, body),
            LoopKind::Serial | LoopKind::Unrolled | LoopKind::Vectorized => {
                let is_same = |condition: &Expr| !mentions(condition, node.var);
                under_tests(body, &is_same, &|side| with_body(node, side))
            }
        };
        // A loop with a test inside has no vector form.
        let is_vectorizable = !matches!(&nest, Stmt::For(node) if node.kind == LoopKind::Vectorized);
        let cost = written_out_size(&nest).saturating_sub(written_out_size(&node.body));
        if !is_vectorizable || cost > before {
            self.budget = before;
            return None;
        }
        self.budget = before - cost;
        Some(self.with_own_names(nest))
    }

    /// Gives the second side of each test its own loops.
    fn with_own_names(&mut self, stmt: Stmt) -> Stmt {
        let Stmt::If(node) = stmt else { return stmt };
        let mut node = If::clone(&node);
        node.then = self.with_own_names(node.then);
        node.otherwise = node.otherwise.map(|otherwise| {
            let otherwise = self.with_own_names(otherwise);
            copy(self.program, &otherwise)
        });
        Stmt::If(Arc::new(node))
    }
}

/// A store for each side of the first selection, and of those inside each side, while there are sides left; `None` without a selection.
fn split(node: &Store, lanes: &[VarId], sides: &mut usize) -> Option<Stmt> {
    let condition = selection(&node.value, lanes).filter(|_| *sides > 0)?;
    *sides -= 1;
    let mut side = |holds: bool| {
        let value = decided(&node.value, &condition, holds);
        let store = Store { value, ..node.clone() };
        split(&store, lanes, sides).unwrap_or_else(|| Stmt::Store(Arc::new(store)))
    };
    let (then, otherwise) = (side(true), Some(side(false)));
    Some(Stmt::If(Arc::new(If { condition, then, otherwise })))
}

/// A statement under a guard, inside of the tests that the statement consists of.
fn guarded(condition: &Expr, stmt: Stmt) -> Stmt {
    under_tests(stmt, &|_| true, &|side| Stmt::when(condition.clone(), side))
}

/// Whether each side of a selection in a store may be a store of its own.
fn may_be_split(node: &Store) -> bool {
    reduction_of(node).is_none() && !node.is_async()
}

/// Changes each side of the tests that a statement consists of, down to tests that are not `passed`.
fn under_tests(stmt: Stmt, passed: &dyn Fn(&Expr) -> bool, change: &dyn Fn(Stmt) -> Stmt) -> Stmt {
    match stmt {
        Stmt::If(test)
            if test.otherwise.is_some() && is_movable(&test.condition) && passed(&test.condition) =>
        {
            let If { condition, then, otherwise } = If::clone(&test);
            let then = under_tests(then, passed, change);
            let otherwise = otherwise.map(|otherwise| under_tests(otherwise, passed, change));
            Stmt::If(Arc::new(If { condition, then, otherwise }))
        }
        stmt => change(stmt),
    }
}

fn with_body(node: &For, body: Stmt) -> Stmt {
    Stmt::For(Arc::new(For { body, ..For::clone(node) }))
}

/// The condition of a selection between two values that are loaded, if it is the same in all lanes.
fn selection(value: &Expr, lanes: &[VarId]) -> Option<Expr> {
    let mut found = None;
    for_each_expr(value, &mut |expr| {
        if let ExprKind::Select(condition, then, otherwise) = expr.kind()
            && found.is_none()
            && is_movable(condition)
            && !lanes.iter().any(|lane| mentions(condition, *lane))
            && loads_anything(then)
            && loads_anything(otherwise)
        {
            found = Some(condition.clone());
        }
    });
    found
}

/// A value where a condition holds, or where it fails.
fn decided(value: &Expr, condition: &Expr, holds: bool) -> Expr {
    let decide = &mut |expr: &Expr| match expr.kind() {
        ExprKind::Select(own, then, otherwise) if own == condition => {
            Some(if holds { then.clone() } else { otherwise.clone() })
        }
        _ => None,
    };
    rewrite_expr(value, decide).unwrap_or_else(|| value.clone())
}

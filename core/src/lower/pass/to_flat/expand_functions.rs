//! Expands transcendental functions into basic operations, as [`crate::math`] defines them.
//!
//! Equal subexpressions of a value become one shared node on the way, so that each function is computed
//! once. The last pass, because the expansions share nodes heavily: a walk that does not remember nodes
//! takes very long.

use rustc_hash::FxHashMap;

use crate::expr::{Expr, ExprKind};
use crate::lower::{LowerError, LowerOptions};
use crate::math;
use crate::program::Program;
use crate::visit::rewrite_stmt;

/// Expands every transcendental function in values and conditions.
pub(in crate::lower) fn expand_functions(program: &mut Program, _: &LowerOptions) -> Result<(), LowerError> {
    rewrite_stmt(&mut program.body, &|_| None, &|expr| Some(Expansion::default().expr(expr)));
    Ok(())
}

#[derive(Default)]
struct Expansion {
    /// The expansion of each node; equal nodes share one.
    known: FxHashMap<Expr, Expr>,
}

impl Expansion {
    fn expr(&mut self, expr: &Expr) -> Expr {
        if let Some(known) = self.known.get(expr) {
            return known.clone();
        }
        let rebuilt = self.operands(expr);
        let expanded = math::expand(&rebuilt).unwrap_or(rebuilt);
        self.known.insert(expr.clone(), expanded.clone());
        expanded
    }

    fn operands(&mut self, expr: &Expr) -> Expr {
        let kind = match expr.kind() {
            ExprKind::Constant(_) | ExprKind::Scalar(_) | ExprKind::Index(_) | ExprKind::Load(..) => {
                return expr.clone();
            }
            ExprKind::Unary(op, a) => ExprKind::Unary(*op, self.expr(a)),
            ExprKind::Binary(op, a, b) => ExprKind::Binary(*op, self.expr(a), self.expr(b)),
            ExprKind::MulAdd(a, b, c) => ExprKind::MulAdd(self.expr(a), self.expr(b), self.expr(c)),
            ExprKind::Select(a, b, c) => ExprKind::Select(self.expr(a), self.expr(b), self.expr(c)),
            ExprKind::Cast(a) => ExprKind::Cast(self.expr(a)),
            ExprKind::Bitcast(a) => ExprKind::Bitcast(self.expr(a)),
            ExprKind::Bounded(a, extent) => ExprKind::Bounded(self.expr(a), extent.clone()),
        };
        Expr::new(expr.dtype(), kind)
    }
}

//! Moves expensive values that do not change in a loop out of it.
//!
//! ```text
//! for j { y[i, j] = x[i, j] * rsqrt(v[i]) }
//! alloc t { t[0] = rsqrt(v[i]) for j { y[i, j] = x[i, j] * t[0] } }
//! ```
//!
//! Only functions, roots and quotients are worth a register; sums and products, and the addresses of
//! loads, are not. Values under a condition stay there.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::analysis::block::{loads_in, stores};
use crate::expr::{Expr, ExprKind, Indices};
use crate::ids::{BufferId, VarId};
use crate::index::{Index, Ranges};
use crate::lower::util::condition::when_runs;
use crate::lower::{LowerError, LowerOptions};
use crate::program::{Buffer, Program, Scope};
use crate::simplify::may_fail;
use crate::stmt::{Alloc, For, LoopKind, Stmt};
use crate::visit::{for_each_expr, for_each_var, lanes, rewrite_expr, rewrite_stmt};

/// Moves expensive values out of the serial loops in which they do not change.
pub(in crate::lower) fn hoist_invariants(program: &mut Program, _: &LowerOptions) -> Result<(), LowerError> {
    let mut body = std::mem::replace(&mut program.body, Stmt::nothing());
    hoist(program, &mut body, &mut Ranges::new());
    program.body = body;
    Ok(())
}

fn hoist(program: &mut Program, stmt: &mut Stmt, around: &mut Ranges) {
    // From the inside out, so that a value leaves one loop after the other.
    if let Stmt::Intrinsic(_) = stmt {
        return;
    }
    let Stmt::For(node) = stmt else {
        return stmt.children_mut().into_iter().for_each(|child| hoist(program, child, around));
    };
    let inner = Arc::make_mut(node);
    around.insert(inner.var, inner.extent.clone());
    hoist(program, &mut inner.body, around);
    around.remove(inner.var);
    if node.kind == LoopKind::Serial
        && let Some(hoisted) = hoist_out_of(program, node, around)
    {
        *stmt = hoisted;
    }
}

fn hoist_out_of(program: &mut Program, node: &For, around: &Ranges) -> Option<Stmt> {
    let mut invariants = Invariants { fixed: Fixed::in_loop(node), found: Vec::new() };
    invariants.stmt(&node.body);
    if invariants.found.is_empty() {
        return None;
    }
    let mut body = node.body.clone();
    let mut before = Vec::new();
    let mut allocated = Vec::new();
    for value in invariants.found {
        let count = lanes(&value);
        let dtype = value.dtype();
        let shape = vec![Index::constant(i64::from(count))];
        let register =
            program.add_buffer(Buffer { name: "invariant".into(), dtype, shape, scope: Scope::Local });
        let place = Indices::from_iter([Index::lane(count)]);
        let load = Expr::load(dtype, register, place.iter().cloned());
        rewrite_stmt(&mut body, &|_| None, &|expr| {
            rewrite_expr(expr, &mut |node| (*node == value).then(|| load.clone()))
        });
        before.push(Stmt::store(register, place, value));
        allocated.push(register);
    }
    let moved = Stmt::For(Arc::new(For { body, ..node.clone() }));
    let body = when_runs(node, around, Stmt::seq(before.into_iter().chain([moved])));
    Some(allocated.into_iter().rev().fold(body, |body, buffer| Stmt::Alloc(Arc::new(Alloc { buffer, body }))))
}

/// The variables and buffers that change while a loop runs.
struct Fixed {
    vars: FxHashSet<VarId>,
    stored: FxHashSet<BufferId>,
}

impl Fixed {
    fn in_loop(node: &For) -> Self {
        let mut vars = FxHashSet::from_iter([node.var]);
        crate::visit::for_each_stmt(&node.body, &mut |stmt| {
            if let Stmt::For(inner) = stmt {
                vars.insert(inner.var);
            }
        });
        Fixed { vars, stored: stores(&node.body).iter().map(|store| store.buffer).collect() }
    }

    /// Whether a value is the same in every iteration.
    fn keeps(&self, value: &Expr) -> bool {
        let mut changes = may_fail(value);
        for_each_var(value, &mut |var| changes |= self.vars.contains(&var));
        let mut found = Vec::new();
        loads_in(value, &mut found);
        !changes && found.iter().all(|load| !self.stored.contains(&load.buffer))
    }
}

/// The largest expensive values that stay the same, in order of appearance.
struct Invariants {
    fixed: Fixed,
    found: Vec<Expr>,
}

impl Invariants {
    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Store(store) => self.expr(&store.value),
            Stmt::Seq(_) | Stmt::Alloc(_) => stmt.children().into_iter().for_each(|child| self.stmt(child)),
            // An inner loop has given up all it could; the remaining values depend on it.
            Stmt::For(_)
            | Stmt::If(_)
            | Stmt::Block(_)
            | Stmt::Intrinsic(_)
            | Stmt::Barrier
            | Stmt::Copies(_)
            | Stmt::Shuffle(_) => {}
        }
    }

    fn expr(&mut self, expr: &Expr) {
        if is_expensive(expr) && self.fixed.keeps(expr) {
            if !self.found.contains(expr) {
                self.found.push(expr.clone());
            }
            return;
        }
        match expr.kind() {
            // Only one branch is evaluated.
            ExprKind::Select(condition, _, _) => self.expr(condition),
            _ => expr.operands().into_iter().for_each(|operand| self.expr(operand)),
        }
    }
}

/// Whether a value takes many times longer to compute than to load.
fn is_expensive(value: &Expr) -> bool {
    let mut expensive = false;
    for_each_expr(value, &mut |node| {
        expensive |= match node.kind() {
            ExprKind::Unary(op, _) => op.cost().is_expensive(),
            ExprKind::Binary(op, ..) => op.cost().is_expensive(),
            _ => false,
        };
    });
    expensive
}

//! What a loop does in its first iteration only, as code of its own.
//!
//! ```text
//! for i { for r in 0..3 { if 2·min(1, i) - r < 1 { … } } … }
//! for i { if i < 1 { for r in 0..3 { … } } else { for r in 0..3 { if 2 - r < 1 { … } } } … }
//! ```
//!
//! Such conditions come from producers that leave out what earlier iterations have made
//! ([`rolling_buffer`](crate::schedule::prim::RollingBuffer)). They are decided before the outermost statement of which
//! they concern every store.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::expr::{BinaryOp, Expr, ExprKind};
use crate::ids::VarId;
use crate::index::{Base, Index, Ranges, Term};
use crate::lower::util::comparison::written_out_size;
use crate::lower::util::condition::is_negative;
use crate::lower::util::copy::copy;
use crate::lower::util::unreached::remove_unreached;
use crate::lower::{LowerError, LowerOptions};
use crate::program::Program;
use crate::simplify::simplify_stmt;
use crate::stmt::{If, Stmt};
use crate::visit::{for_each_expr, for_each_stmt, rewrite_indices, rewrite_stmt, substitute_stmt};

/// Separates first iterations from all others.
pub(in crate::lower) fn peel_first_iterations(
    program: &mut Program,
    options: &LowerOptions,
) -> Result<(), LowerError> {
    let mut body = std::mem::replace(&mut program.body, Stmt::nothing());
    if first_number(&body).is_some() {
        let budget = options.max_partition_statements;
        Split { program, budget, outer: Ranges::new() }.stmt(&mut body);
    }
    program.body = body;
    remove_unreached(program);
    Ok(())
}

struct Split<'p> {
    program: &'p mut Program,
    /// How many more statements may be made.
    budget: usize,
    /// The loops around the current place.
    outer: Ranges,
}

impl Split<'_> {
    fn stmt(&mut self, stmt: &mut Stmt) {
        let Some(first) = first_number(stmt) else { return };
        let cost = written_out_size(stmt);
        if is_known_before(&first, stmt) && concerns_all(stmt, &first) && cost <= self.budget {
            self.budget -= cost;
            *stmt = self.split(stmt, &first);
            return self.stmt(stmt);
        }
        match stmt {
            Stmt::For(node) => {
                let node = Arc::make_mut(node);
                self.outer.insert_loop(node);
                self.stmt(&mut node.body);
                self.outer.remove(node.var);
            }
            _ => stmt.children_mut().into_iter().for_each(|child| self.stmt(child)),
        }
    }

    fn split(&mut self, stmt: &Stmt, first: &First) -> Stmt {
        let (mut then, mut otherwise) = (stmt.clone(), copy(self.program, stmt));
        first.replace(&mut then, 0);
        first.replace(&mut otherwise, 1);
        if first.counts_from_zero() {
            substitute_stmt(&mut then, &|var| first.number.mentions(var).then(|| Index::constant(0)));
        }
        simplify_stmt(&mut then, &self.outer);
        simplify_stmt(&mut otherwise, &self.outer);
        let otherwise = Some(otherwise);
        let condition = is_negative(&first.number.offset(-1));
        Stmt::If(Arc::new(If { condition, then, otherwise }))
    }
}

/// `min(1, number)`, which is 0 in the first iteration only.
struct First {
    number: Index,
    base: Base,
}

impl First {
    fn of(base: &Base) -> Option<Self> {
        let Base::Value(value) = base else { return None };
        let ExprKind::Binary(BinaryOp::Min, a, b) = value.kind() else { return None };
        let (a, b) = (Index::value(a.clone()), Index::value(b.clone()));
        let number = match (a.is(1), b.is(1)) {
            (true, _) => b,
            (_, true) => a,
            _ => return None,
        };
        Some(First { number, base: base.clone() })
    }

    fn replace(&self, stmt: &mut Stmt, value: i64) {
        let index = |index: &Index| {
            let occurs = index.terms().iter().any(|term| term.digit.base == self.base);
            occurs.then(|| index.map_bases(&|base| (*base == self.base).then(|| Index::constant(value))))
        };
        rewrite_stmt(stmt, &index, &|expr| rewrite_indices(expr, &index));
    }

    /// Whether the number is 0 only where all its variables are.
    fn counts_from_zero(&self) -> bool {
        let grows = |term: &Term| {
            term.coefficient > 0 && term.digit.is_whole() && matches!(term.digit.base, Base::Var(_))
        };
        self.number.constant_part() == 0 && self.number.terms().iter().all(grows)
    }

    fn is_in(&self, condition: &Expr) -> bool {
        let mut is_in = false;
        for_each_base(condition, &mut |base| is_in |= *base == self.base);
        is_in
    }
}

/// Calls `visit` with what each digit of the indices in a condition is taken of.
fn for_each_base(condition: &Expr, visit: &mut dyn FnMut(&Base)) {
    for_each_expr(condition, &mut |node| {
        if let ExprKind::Index(index) = node.kind() {
            index.terms().iter().for_each(|term| visit(&term.digit.base));
        }
    });
}

/// The first such number in the conditions of a statement that counts anything.
fn first_number(stmt: &Stmt) -> Option<First> {
    let mut found = None;
    for_each_stmt(stmt, &mut |stmt| {
        if let (Stmt::If(node), None) = (stmt, &found) {
            for_each_base(&node.condition, &mut |base| {
                if found.is_none() {
                    found = First::of(base).filter(|first| mentions_any(&first.number));
                }
            });
        }
    });
    found
}

fn mentions_any(index: &Index) -> bool {
    let mut mentions = false;
    index.for_each_var(&mut |_| mentions = true);
    mentions
}

/// Whether a number does not depend on loops inside a statement.
fn is_known_before(first: &First, stmt: &Stmt) -> bool {
    let mut inside: FxHashSet<VarId> = FxHashSet::default();
    for_each_stmt(stmt, &mut |stmt| {
        if let Stmt::For(node) = stmt {
            inside.insert(node.var);
        }
    });
    let mut is_known = true;
    first.number.for_each_var(&mut |var| is_known &= !inside.contains(&var));
    is_known
}

/// Whether every store of a statement is under a condition on a number.
fn concerns_all(stmt: &Stmt, first: &First) -> bool {
    match stmt {
        Stmt::Store(_) => false,
        Stmt::If(node) if node.otherwise.is_none() && first.is_in(&node.condition) => true,
        _ => stmt.each_child().all(|child| concerns_all(child, first)),
    }
}

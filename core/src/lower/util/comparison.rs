//! Comparisons of indices in guards and values, seen from a statement above them: whether a comparison has the same value
//! in all iterations of the loops in between.

use std::sync::Arc;

use crate::analysis::condition::difference;
use crate::expr::{Constant, Expr};
use crate::ids::VarId;
use crate::index::{Index, Ranges};
use crate::lower::util::prune::remove_empty;
use crate::simplify::simplify_expr;
use crate::stmt::{For, LoopKind, Stmt};
use crate::visit::{for_each_expr, rewrite_expr};

/// A comparison somewhere below a statement.
#[derive(Clone, Debug)]
pub(in crate::lower) struct Comparison {
    /// Negative when the comparison holds.
    pub(in crate::lower) difference: Index,
    /// The terms of the difference that depend on the loops below the statement.
    pub(in crate::lower) inner: Index,
    /// The largest difference while the loops below the statement run: negative when the comparison
    /// always holds. Comparisons of equal reach are decided together.
    pub(in crate::lower) reach: Index,
    /// The loops below the statement.
    pub(in crate::lower) below: Ranges,
    /// Whether the outermost loop that decides it is unrolled or vectorized.
    pub(in crate::lower) is_hot: bool,
    /// Whether it differs between the lanes of a vector.
    pub(in crate::lower) has_lanes: bool,
    /// How often it is evaluated below the statement, at least.
    pub(in crate::lower) evaluations: i64,
}

/// The loops between a statement and a comparison.
#[derive(Default)]
pub(in crate::lower) struct Below {
    loops: Vec<(VarId, LoopKind)>,
    ranges: Ranges,
}

impl Below {
    pub(in crate::lower) fn enter(&mut self, node: &For) {
        self.loops.push((node.var, node.kind));
        self.ranges.insert_loop(node);
    }

    pub(in crate::lower) fn leave(&mut self) {
        if let Some((var, _)) = self.loops.pop() {
            self.ranges.remove(var);
        }
    }

    /// How often a condition is evaluated, at least: once for all lanes unless it depends on them.
    fn evaluations(&self, difference: &Index) -> i64 {
        let counts =
            |(var, kind): &&(VarId, LoopKind)| *kind != LoopKind::Vectorized || difference.mentions(*var);
        let extents =
            self.loops.iter().filter(counts).filter_map(|(var, _)| self.ranges.constant_extent(*var));
        extents.fold(1, i64::saturating_mul)
    }

    /// The expression as a comparison, if it is one.
    pub(in crate::lower) fn comparison(&self, expr: &Expr) -> Option<Comparison> {
        let difference = difference(expr)?;
        let kind = self.loops.iter().find(|(var, _)| difference.mentions(*var)).map(|(_, kind)| *kind);
        let is_hot = matches!(kind, Some(LoopKind::Unrolled | LoopKind::Vectorized));
        let is_lane =
            |(var, kind): &(VarId, LoopKind)| *kind == LoopKind::Vectorized && difference.mentions(*var);
        let has_lanes = self.loops.iter().any(is_lane);
        let reach = difference.upper_bound(&self.ranges)?;
        let inner = difference
            .terms()
            .iter()
            .filter(|term| mentions_any(&Index::digit(term.digit.clone()), &self.ranges));
        let inner = Index::from_terms(inner.cloned(), 0);
        let evaluations = self.evaluations(&difference);
        let below = self.ranges.clone();
        Some(Comparison { difference, inner, reach, below, is_hot, has_lanes, evaluations })
    }
}

pub(in crate::lower) fn mentions_any(index: &Index, ranges: &Ranges) -> bool {
    let mut found = false;
    index.for_each_var(&mut |var| found |= ranges.contains(var));
    found
}

/// Where a comparison stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::lower) enum ComparisonSite {
    /// In the condition of an `if`.
    Guard,
    /// In a value that is stored.
    Value,
}

/// Calls `visit` with every comparison at one kind of site in a statement.
pub(in crate::lower) fn for_each_comparison(
    stmt: &Stmt,
    site: ComparisonSite,
    below: &mut Below,
    visit: &mut dyn FnMut(Comparison),
) {
    let expr = match (stmt, site) {
        (Stmt::Store(node), ComparisonSite::Value) => Some(&node.value),
        (Stmt::If(node), ComparisonSite::Guard) => Some(&node.condition),
        _ => None,
    };
    if let Some(expr) = expr {
        for_each_expr(expr, &mut |node| {
            if let Some(found) = below.comparison(node) {
                visit(found);
            }
        });
    }
    if let Stmt::Intrinsic(_) = stmt {
        // Its loops belong to the instruction: nothing decides its comparisons beforehand.
        return;
    }
    if let Stmt::For(node) = stmt {
        below.enter(node);
    }
    for child in stmt.children() {
        for_each_comparison(child, site, below, visit);
    }
    if let Stmt::For(_) = stmt {
        below.leave();
    }
}

/// Gives the value of a comparison, or `None` where it is not known.
pub(in crate::lower) type ValueOf<'a> = &'a mut dyn FnMut(&Comparison) -> Option<Expr>;

/// A statement in which every comparison of a reach is replaced.
pub(in crate::lower) fn decide(stmt: &Stmt, reach: &Index, value_of: ValueOf<'_>) -> Stmt {
    let mut decided = stmt.clone();
    decide_below(&mut decided, reach, value_of, &mut Below::default());
    decided
}

fn decide_below(stmt: &mut Stmt, reach: &Index, value_of: ValueOf<'_>, below: &mut Below) {
    let mut in_expr = |expr: &Expr, below: &Below| {
        let replaced = rewrite_expr(expr, &mut |node| {
            let found = below.comparison(node)?;
            if found.reach == *reach { value_of(&found) } else { None }
        })?;
        Some(simplify_expr(&replaced, &Ranges::new()).unwrap_or(replaced))
    };
    match stmt {
        Stmt::Store(node) => {
            if let Some(value) = in_expr(&node.value, below) {
                Arc::make_mut(node).value = value;
            }
        }
        Stmt::If(node) => {
            if let Some(condition) = in_expr(&node.condition, below) {
                Arc::make_mut(node).condition = condition;
            }
            if let Some(Constant::Int(decided)) = node.condition.as_constant() {
                let taken = if decided != 0 { Some(&node.then) } else { node.otherwise.as_ref() };
                *stmt = taken.cloned().unwrap_or_else(Stmt::nothing);
                return decide_below(stmt, reach, value_of, below);
            }
        }
        Stmt::Intrinsic(_) => return,
        _ => {}
    }
    if let Stmt::For(node) = stmt {
        below.enter(node);
    }
    for child in stmt.children_mut() {
        decide_below(child, reach, value_of, below);
    }
    if let Stmt::For(_) = stmt {
        below.leave();
    }
    remove_empty(stmt);
}

/// The number of stores when unrolled loops are written out.
pub(in crate::lower) fn written_out_size(stmt: &Stmt) -> usize {
    let inside: usize = stmt.children().into_iter().map(written_out_size).sum();
    match stmt {
        Stmt::Store(_) => 1,
        Stmt::For(node) if node.kind == LoopKind::Unrolled => {
            let copies = node.extent.as_constant().and_then(|copies| usize::try_from(copies).ok());
            inside.saturating_mul(copies.unwrap_or(1))
        }
        _ => inside,
    }
}

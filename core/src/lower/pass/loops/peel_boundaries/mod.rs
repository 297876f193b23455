//! Splits the interior of a padded domain from its boundary: the interior evaluates no comparison for each element.
//!
//! ```text
//! for h { for n { for m in 0..8 { y[h, 8·n + m] = select(h >= 3, x[h - 3, 8·n + m], 0) } } }
//! for h { for n { if h >= 3 { for m in 0..8 { … x[h - 3, 8·n + m] … } } else { for m in 0..8 { … select … } } } }
//! ```
//!
//! The pass tests the comparisons in the values of a nest once, before the nest, where they have the same value in all
//! of its iterations more often than not. The test stands at the innermost position that still saves many evaluations, but
//! outside of the reduction loops of a tile and of the statements that initialise and store its accumulators, which stay in
//! registers. Other loops, also those of the boundary, are [cut](cut) where a comparison changes, or a guard. Backends handle loads that
//! are still conditional then.

mod cut;

use std::sync::Arc;

use crate::access::is_allocated;
use crate::analysis::access::is_indivisible;
use crate::analysis::block::{reduction_of, stores};
use crate::expr::{BinaryOp, Expr};
use crate::index::{Index, Ranges, greatest_common_divisor};
use crate::lower::pass::loops::peel_boundaries::cut::{cut, find_cut_point, last_tile};
use crate::lower::util::comparison::{
    Below, ComparisonSite, decide, for_each_comparison, mentions_any, written_out_size,
};
use crate::lower::util::condition::is_negative;
use crate::lower::util::copy::copy;
use crate::lower::{LowerError, LowerOptions};
use crate::program::Program;
use crate::simplify::simplify_stmt;
use crate::stmt::{For, If, LoopKind, Stmt, Store};
use crate::visit::substitute_stmt;

/// A test must save at least this many evaluations of a comparison.
const LEAST_SPARED: i64 = 8;

/// A test must find the interior in at least this share of its executions.
const LEAST_SHARE: f64 = 0.5;

/// Splits the interior of nests from their boundaries.
pub(in crate::lower) fn peel_boundaries(
    program: &mut Program,
    options: &LowerOptions,
) -> Result<(), LowerError> {
    let unchanged = program.clone();
    if !peel(program, options, options.max_cut_statements) {
        // Guards that are left inside tiles cost more than those that partitioning decides.
        *program = unchanged;
        peel(program, options, 0);
    }
    Ok(())
}

/// Splits nests, with a budget for guards; false when that was too small for some cut.
fn peel(program: &mut Program, options: &LowerOptions, guard_budget: usize) -> bool {
    let body = std::mem::replace(&mut program.body, Stmt::nothing());
    let mut peeler = Peeler {
        program,
        outer: Ranges::new(),
        budget: options.max_partition_statements,
        guard_budget,
        is_exhausted: false,
        is_settled: false,
    };
    let peeled = peeler.stmt(&body).unwrap_or(body);
    let is_exhausted = peeler.is_exhausted;
    program.body = peeled;
    !is_exhausted
}

struct Peeler<'p> {
    program: &'p mut Program,
    /// The loops around the current statement.
    outer: Ranges,
    /// How many more statements may be made for comparisons in values.
    budget: usize,
    /// How many more statements may be made for guards.
    guard_budget: usize,
    /// Whether a cut for a guard would have taken more.
    is_exhausted: bool,
    /// Whether no test may stand here: in a boundary, whose test has failed, and inside a reduction loop.
    is_settled: bool,
}

impl Peeler<'_> {
    /// `None` when the statement stays as it is.
    fn stmt(&mut self, stmt: &Stmt) -> Option<Stmt> {
        if !has_comparisons(stmt) && !has_guards(stmt) {
            return None;
        }
        if let Some(reaches) = self.test_before(stmt) {
            return self.test(stmt, &reaches);
        }
        let mut edited = stmt.clone();
        let Stmt::For(node) = &mut edited else {
            for child in edited.children_mut() {
                if let Some(new) = self.stmt(child) {
                    *child = new;
                }
            }
            return Some(edited);
        };
        if let Some(pieces) = self.cut(node).or_else(|| self.branch(node)) {
            return Some(pieces);
        }
        let body = self.inside(node, |peeler| match is_sum(node) {
            true => peeler.without_tests(|peeler| peeler.stmt(&node.body)),
            false => peeler.stmt(&node.body),
        });
        if let Some(body) = body {
            Arc::make_mut(node).body = body;
        }
        Some(edited)
    }

    /// The reaches to test before a statement, if a test belongs there.
    fn test_before(&mut self, stmt: &Stmt) -> Option<Vec<Index>> {
        match stmt {
            // Grids stay whole, and threads that wait for each other must not take different branches.
            _ if self.is_settled || is_indivisible(stmt) => None,
            Stmt::For(node) => self
                .interior_of(node)
                .filter(|_| is_sum(node) || !self.inside(node, |peeler| peeler.covers(&node.body))),
            // Initialisation and store of accumulators stay with their reduction loop, or the accumulators would leave their registers in between.
            Stmt::Seq(children) if written_out_size(stmt) <= self.budget => {
                let mut compared = children.iter().filter(|child| has_comparisons(child));
                match (compared.next(), compared.next()) {
                    (Some(Stmt::For(node)), None) if is_sum(node) => self.interior_of(node),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn test(&mut self, stmt: &Stmt, reaches: &[Index]) -> Option<Stmt> {
        let cost = written_out_size(stmt);
        if cost > self.budget {
            return None;
        }
        self.budget -= cost;
        let inside = reaches
            .iter()
            .fold(stmt.clone(), |inside, reach| decide(&inside, reach, &mut |_| Some(Expr::bool(true))));
        let condition = reaches.iter().map(is_negative).reduce(|a, b| Expr::binary(BinaryOp::And, a, b))?;
        let boundary = copy(self.program, stmt);
        let boundary = self.without_tests(|peeler| peeler.stmt(&boundary)).unwrap_or(boundary);
        Some(Stmt::If(Arc::new(If { condition, then: inside, otherwise: Some(boundary) })))
    }

    fn cut(&mut self, node: &For) -> Option<Stmt> {
        if is_indivisible(&node.body) {
            return None;
        }
        let point = find_cut_point(node)?;
        let cost = written_out_size(&node.body);
        match point.site {
            ComparisonSite::Value => self.budget = self.budget.checked_sub(cost)?,
            ComparisonSite::Guard => self.pay_for_guard(cost)?,
        }
        let mut pieces = cut(self.program, node, &point);
        // The longer one first, as the other may use up what is left of the budget.
        let [before, after] = &mut pieces;
        let is_later_longer = iterations(before) < iterations(after);
        let own = self.budget;
        for piece in if is_later_longer { [after, before] } else { [before, after] } {
            // The last tile of a loop is like a program of its own.
            if point.site == ComparisonSite::Guard {
                self.budget = own;
            }
            simplify_stmt(piece, &self.outer);
            if let Some(peeled) = self.stmt(piece) {
                *piece = peeled;
            }
        }
        Some(Stmt::seq(pieces))
    }

    fn pay_for_guard(&mut self, cost: usize) -> Option<()> {
        let rest = self.guard_budget.checked_sub(cost);
        self.is_exhausted |= rest.is_none();
        self.guard_budget = rest?;
        Some(())
    }

    /// A parallel loop whose last iteration, in which guards fail, is a branch of its own.
    fn branch(&mut self, node: &For) -> Option<Stmt> {
        let last = last_tile(node).filter(|_| !is_indivisible(&node.body))?;
        self.pay_for_guard(written_out_size(&node.body))?;
        let own = self.budget;
        let mut full = node.body.clone();
        self.outer.insert_constant(node.var, last);
        simplify_stmt(&mut full, &self.outer);
        full = self.stmt(&full).unwrap_or(full);
        self.outer.remove(node.var);
        self.budget = own;
        let mut partial = copy(self.program, &node.body);
        substitute_stmt(&mut partial, &|var| (var == node.var).then(|| Index::constant(last)));
        simplify_stmt(&mut partial, &self.outer);
        partial = self.stmt(&partial).unwrap_or(partial);
        let condition = is_negative(&Index::var(node.var).offset(-last));
        let body = Stmt::If(Arc::new(If { condition, then: full, otherwise: Some(partial) }));
        Some(Stmt::For(Arc::new(For { body, ..node.clone() })))
    }

    fn without_tests<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.is_settled, true);
        let result = act(self);
        self.is_settled = before;
        result
    }

    /// Does something as if inside a loop.
    fn inside<T>(&mut self, node: &For, act: impl FnOnce(&mut Self) -> T) -> T {
        self.outer.insert_loop(node);
        let result = act(self);
        self.outer.remove(node.var);
        result
    }

    /// Whether every comparison in a statement is inside a nest that is worth a test of its own.
    fn covers(&mut self, stmt: &Stmt) -> bool {
        match stmt {
            _ if !has_comparisons(stmt) => true,
            Stmt::Store(_) => false,
            Stmt::For(node) => {
                self.interior_of(node).is_some()
                    || (!is_sum(node) && self.inside(node, |peeler| peeler.covers(&node.body)))
            }
            _ => stmt.children().into_iter().all(|child| self.covers(child)),
        }
    }

    /// The reaches of the comparisons in a nest, if a test before it is worth its code.
    fn interior_of(&self, node: &Arc<For>) -> Option<Vec<Index>> {
        let mut reaches: Vec<Index> = Vec::new();
        let mut spared = 0;
        for_each_comparison(
            &Stmt::For(node.clone()),
            ComparisonSite::Value,
            &mut Below::default(),
            &mut |found| {
                // The others vary within the nest, whatever the iteration of the loops around it.
                if !mentions_any(&found.reach, &self.outer) {
                    return;
                }
                spared = spared.max(found.evaluations);
                if !reaches.contains(&found.reach) {
                    reaches.push(found.reach);
                }
            },
        );
        if reaches.is_empty() || spared < LEAST_SPARED {
            return None;
        }
        let share: f64 = reaches.iter().map(|reach| share_of_negative(reach, &self.outer)).product();
        (share >= LEAST_SHARE).then_some(reaches)
    }
}

/// The number of iterations of a loop; the largest number where it is unknown, 1 for other statements.
fn iterations(stmt: &Stmt) -> i64 {
    match stmt {
        Stmt::For(node) => node.extent.as_constant().unwrap_or(i64::MAX),
        _ => 1,
    }
}

/// Whether a loop adds to the same elements in all its iterations, in a buffer that lives longer than an iteration.
fn adds_up(node: &For) -> bool {
    let stays = |store: &&Store| {
        let is_same = !store.indices.iter().any(|index| index.mentions(node.var));
        is_same && reduction_of(store).is_some() && !is_allocated(&node.body, store.buffer)
    };
    !node.extent.is(1) && stores(&node.body).iter().any(stays)
}

/// Whether this is the reduction loop of one tile. A test inside it would force the accumulators out of their registers.
pub(in crate::lower) fn is_sum(node: &For) -> bool {
    adds_up(node) && !has_steps(&node.body)
}

fn has_steps(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::For(node) if is_step(node)) || stmt.children().into_iter().any(has_steps)
}

/// Whether a loop runs over tiles of accumulators.
pub(in crate::lower) fn is_step(node: &For) -> bool {
    node.kind == LoopKind::Serial && !node.extent.is(1) && !adds_up(node) && has_sums(&node.body)
}

/// Whether there are reduction loops.
fn has_sums(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::For(node) if adds_up(node)) || stmt.children().into_iter().any(has_sums)
}

/// Whether there are comparisons in guards.
fn has_guards(stmt: &Stmt) -> bool {
    let mut has = false;
    for_each_comparison(stmt, ComparisonSite::Guard, &mut Below::default(), &mut |_| has = true);
    has
}

fn has_comparisons(stmt: &Stmt) -> bool {
    let mut has = false;
    for_each_comparison(stmt, ComparisonSite::Value, &mut Below::default(), &mut |_| has = true);
    has
}

/// The share of negative values of an index, taking the values between its bounds as equally frequent; 0
/// when it has no bounds.
fn share_of_negative(index: &Index, ranges: &Ranges) -> f64 {
    let interval = index.interval(ranges);
    if !interval.is_bounded() {
        return 0.0;
    }
    let step =
        index.terms().iter().fold(0, |step, term| greatest_common_divisor(step, term.coefficient)).max(1);
    let values = (interval.max - interval.min) / step + 1;
    let negative = if interval.min >= 0 { 0 } else { ((-interval.min - 1) / step + 1).min(values) };
    negative as f64 / values as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::VarId;

    #[test]
    fn shares_count_the_positions_of_tiles() {
        let tile = Index::var(VarId(0)).scale(8);
        let ranges = Ranges::from_iter([(VarId(0), Index::constant(4))]);
        for (bound, share) in [(0, 0.0), (1, 0.25), (8, 0.25), (9, 0.5), (24, 0.75), (25, 1.0), (100, 1.0)] {
            let found = share_of_negative(&tile.offset(-bound), &ranges);
            assert!((found - share).abs() < 1e-9, "8·t < {bound}: {found} instead of {share}");
        }
        assert!(share_of_negative(&Index::var(VarId(1)), &ranges).abs() < 1e-9, "unbounded");
    }
}

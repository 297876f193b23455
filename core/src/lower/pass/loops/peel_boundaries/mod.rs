//! The interior of a padded domain, where no element asks whether it is inside.
//!
//! ```text
//! for h { for n { for m in 0..8 { y[h, 8·n + m] = select(h >= 3, x[h - 3, 8·n + m], 0) } } }
//! for h { for n { if h >= 3 { for m in 0..8 { … x[h - 3, 8·n + m] … } } else { for m in 0..8 { … select … } } } }
//! ```
//!
//! The comparisons in the values of a nest are asked once, before the nest, where they come out the same
//! for all of its iterations more often than not: at the innermost place that still spares many, but outside of the sums of a tile
//! and of what begins and ends them, which stay in registers. Other loops, also those of the nest for the border, are
//! [cut](cut) where a comparison changes. Loads that are still under conditions then are left to backends.

mod cut;

use std::sync::Arc;

use crate::analysis::access::holds_barrier;
use crate::analysis::block::{reduction_of, stores};
use crate::expr::{BinaryOp, Expr};
use crate::index::{Index, Ranges, greatest_common_divisor};
use crate::lower::pass::loops::peel_boundaries::cut::{cut, find_border};
use crate::lower::util::access::is_allocated;
use crate::lower::util::comparison::{
    Below, Place, decide, for_each_comparison, mentions_any, written_out_size,
};
use crate::lower::util::condition::is_negative;
use crate::lower::util::copy::copy;
use crate::lower::{LowerError, LowerOptions};
use crate::program::Program;
use crate::simplify::simplify_stmt;
use crate::stmt::{For, If, LoopKind, Stmt, Store};

/// How many evaluations of a comparison one question must spare.
const LEAST_SPARED: i64 = 8;

/// The least share of places at which the interior must be found.
const LEAST_SHARE: f64 = 0.5;

/// Splits off the interior of nests whose values depend on where they are.
pub(in crate::lower) fn peel_boundaries(
    program: &mut Program,
    options: &LowerOptions,
) -> Result<(), LowerError> {
    let body = std::mem::replace(&mut program.body, Stmt::nothing());
    let budget = options.max_partition_statements;
    let body =
        Split { program, outer: Ranges::new(), budget, asks_no_more: false }.stmt(&body).unwrap_or(body);
    program.body = body;
    Ok(())
}

struct Split<'p> {
    program: &'p mut Program,
    /// The loops around the current place.
    outer: Ranges,
    /// How many more statements may be made.
    budget: usize,
    /// Whether this is a border, where it is known that not all is inside, or within a sum.
    asks_no_more: bool,
}

impl Split<'_> {
    /// `None` when the statement stays as it is.
    fn stmt(&mut self, stmt: &Stmt) -> Option<Stmt> {
        if !has_comparisons(stmt) {
            return None;
        }
        if let Some(reaches) = self.question_before(stmt) {
            return self.split(stmt, &reaches);
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
        if let Some(pieces) = self.cut(node) {
            return Some(pieces);
        }
        let body = self.inside(node, |split| match is_sum(node) {
            true => split.without_questions(|split| split.stmt(&node.body)),
            false => split.stmt(&node.body),
        });
        if let Some(body) = body {
            Arc::make_mut(node).body = body;
        }
        Some(edited)
    }

    /// The reaches to ask for before a statement, where this is the place for it.
    fn question_before(&mut self, stmt: &Stmt) -> Option<Vec<Index>> {
        match stmt {
            // Threads that wait for each other must not take different branches.
            _ if self.asks_no_more || holds_barrier(stmt) => None,
            Stmt::For(node) => self
                .interior_of(node)
                .filter(|_| is_sum(node) || !self.inside(node, |split| split.covers(&node.body))),
            // What begins and ends a sum belongs on the same side, or the sum would have to leave its registers in between.
            Stmt::Seq(children) if written_out_size(stmt) <= self.budget => {
                let mut asking = children.iter().filter(|child| has_comparisons(child));
                match (asking.next(), asking.next()) {
                    (Some(Stmt::For(node)), None) if is_sum(node) => self.interior_of(node),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn split(&mut self, stmt: &Stmt, reaches: &[Index]) -> Option<Stmt> {
        let cost = written_out_size(stmt);
        if cost > self.budget {
            return None;
        }
        self.budget -= cost;
        let inside = reaches
            .iter()
            .fold(stmt.clone(), |inside, reach| decide(&inside, reach, &mut |_| Some(Expr::bool(true))));
        let condition = reaches.iter().map(is_negative).reduce(|a, b| Expr::binary(BinaryOp::And, a, b))?;
        let border = copy(self.program, stmt);
        let border = self.without_questions(|split| split.stmt(&border)).unwrap_or(border);
        Some(Stmt::If(Arc::new(If { condition, then: inside, otherwise: Some(border) })))
    }

    fn cut(&mut self, node: &For) -> Option<Stmt> {
        if holds_barrier(&node.body) {
            return None;
        }
        let border = find_border(node)?;
        let cost = written_out_size(&node.body);
        if cost > self.budget {
            return None;
        }
        self.budget -= cost;
        let mut pieces = cut(self.program, node, &border);
        // The longer one first, as the other may use up what is left of the budget.
        let [before, after] = &mut pieces;
        let is_later_longer = iterations(before) < iterations(after);
        for piece in if is_later_longer { [after, before] } else { [before, after] } {
            simplify_stmt(piece, &self.outer);
            if let Some(split) = self.stmt(piece) {
                *piece = split;
            }
        }
        Some(Stmt::seq(pieces))
    }

    fn without_questions<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.asks_no_more, true);
        let result = act(self);
        self.asks_no_more = before;
        result
    }

    /// Does something as if inside a loop.
    fn inside<T>(&mut self, node: &For, act: impl FnOnce(&mut Self) -> T) -> T {
        self.outer.insert_loop(node);
        let result = act(self);
        self.outer.remove(node.var);
        result
    }

    /// Whether every comparison in a statement is inside a nest that is worth a split of its own.
    fn covers(&mut self, stmt: &Stmt) -> bool {
        match stmt {
            _ if !has_comparisons(stmt) => true,
            Stmt::Store(_) => false,
            Stmt::For(node) => {
                self.interior_of(node).is_some()
                    || (!is_sum(node) && self.inside(node, |split| split.covers(&node.body)))
            }
            _ => stmt.children().into_iter().all(|child| self.covers(child)),
        }
    }

    /// The reaches of the comparisons in a nest, when a question before it is worth while.
    fn interior_of(&self, node: &Arc<For>) -> Option<Vec<Index>> {
        let mut reaches: Vec<Index> = Vec::new();
        let mut spared = 0;
        for_each_comparison(&Stmt::For(node.clone()), Place::Value, &mut Below::default(), &mut |found| {
            // Others come out differently within the nest wherever it is.
            if !mentions_any(&found.reach, &self.outer) {
                return;
            }
            spared = spared.max(found.evaluations);
            if !reaches.contains(&found.reach) {
                reaches.push(found.reach);
            }
        });
        if reaches.is_empty() || spared < LEAST_SPARED {
            return None;
        }
        let share: f64 = reaches.iter().map(|reach| share_of_negative(reach, &self.outer)).product();
        (share >= LEAST_SHARE).then_some(reaches)
    }
}

/// How often a loop runs, as far as that is known.
fn iterations(stmt: &Stmt) -> i64 {
    match stmt {
        Stmt::For(node) => node.extent.as_constant().unwrap_or(i64::MAX),
        _ => 1,
    }
}

/// Whether a loop adds to the same elements in all its iterations, of a buffer that outlives them.
fn adds_up(node: &For) -> bool {
    let stays = |store: &&Store| {
        let is_same = !store.indices.iter().any(|index| index.mentions(node.var));
        is_same && reduction_of(store).is_some() && !is_allocated(&node.body, store.buffer)
    };
    !node.extent.is(1) && stores(&node.body).iter().any(stays)
}

/// Whether a loop adds up the sums of one tile. A question inside would part them, so that they had to leave their registers.
fn is_sum(node: &For) -> bool {
    adds_up(node) && !has_steps(&node.body)
}

fn has_steps(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::For(node) if is_step(node)) || stmt.children().into_iter().any(has_steps)
}

/// Whether a loop leads from one tile of sums to the next.
pub(in crate::lower) fn is_step(node: &For) -> bool {
    node.kind == LoopKind::Serial && !node.extent.is(1) && !adds_up(node) && has_sums(&node.body)
}

/// Whether there are loops that add up.
fn has_sums(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::For(node) if adds_up(node)) || stmt.children().into_iter().any(has_sums)
}

fn has_comparisons(stmt: &Stmt) -> bool {
    let mut has = false;
    for_each_comparison(stmt, Place::Value, &mut Below::default(), &mut |_| has = true);
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
    fn shares_count_the_places_that_tiles_take() {
        let tile = Index::var(VarId(0)).scale(8);
        let ranges = Ranges::from_iter([(VarId(0), Index::constant(4))]);
        for (bound, share) in [(0, 0.0), (1, 0.25), (8, 0.25), (9, 0.5), (24, 0.75), (25, 1.0), (100, 1.0)] {
            let found = share_of_negative(&tile.offset(-bound), &ranges);
            assert!((found - share).abs() < 1e-9, "8·t < {bound}: {found} instead of {share}");
        }
        assert!(share_of_negative(&Index::var(VarId(1)), &ranges).abs() < 1e-9, "unbounded");
    }
}

//! The interior of a padded domain, where no element asks whether it is inside.
//!
//! ```text
//! for h { for n { for m in 0..8 { y[h, 8·n + m] = select(h >= 3, x[h - 3, 8·n + m], 0) } } }
//! for h { for n { if h >= 3 { for m in 0..8 { … x[h - 3, 8·n + m] … } } else { for m in 0..8 { … select … } } } }
//! ```
//!
//! The comparisons in the values of a nest are asked once, before the nest, where they come out the same
//! for all of its iterations more often than not: at the innermost place that still spares many, but before a
//! loop that adds up, and then once more within the border's. Other loops, also those of the nest for the border, are
//! [cut](super::border) where a comparison changes.

use std::sync::Arc;

use crate::analysis::block::{reduction_of, stores};
use crate::expr::{BinaryOp, Expr};
use crate::index::{Index, Ranges, greatest_common_divisor};
use crate::lower::border::{cut, find_border};
use crate::lower::comparison::{Below, Place, decide, for_each_comparison, mentions_any, written_out_size};
use crate::lower::condition::is_negative;
use crate::lower::copy::copy;
use crate::lower::{LowerError, LowerOptions};
use crate::program::Program;
use crate::simplify::simplify_stmt;
use crate::stmt::{For, If, Stmt, Store};

/// How many evaluations of a comparison one question must spare.
const LEAST_SPARED: i64 = 8;

/// The least share of places at which the interior must be found.
const LEAST_SHARE: f64 = 0.5;

/// Splits off the interior of nests whose values depend on where they are.
pub(super) fn split_interiors(program: &mut Program, options: &LowerOptions) -> Result<(), LowerError> {
    let body = std::mem::replace(&mut program.body, Stmt::nothing());
    let budget = options.max_partition_statements;
    let body = Split { program, outer: Ranges::new(), budget, is_border: false }.stmt(&body).unwrap_or(body);
    program.body = body;
    Ok(())
}

struct Split<'p> {
    program: &'p mut Program,
    /// The loops around the current place.
    outer: Ranges,
    /// How many more statements may be made.
    budget: usize,
    /// Whether it is known here that not all is inside.
    is_border: bool,
}

impl Split<'_> {
    /// `None` when the statement stays as it is.
    fn stmt(&mut self, stmt: &Stmt) -> Option<Stmt> {
        if !has_comparisons(stmt) {
            return None;
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
        if !self.is_border
            && let Some(reaches) = self.interior_of(node)
            && (adds_up(node) || !self.inside(node, |split| split.covers(&node.body)))
        {
            return self.split(stmt, &reaches);
        }
        if let Some(pieces) = self.cut(node) {
            return Some(pieces);
        }
        let node = Arc::make_mut(node);
        self.outer.insert_loop(node);
        if let Some(body) = self.stmt(&node.body) {
            node.body = body;
        }
        self.outer.remove(node.var);
        Some(edited)
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
        let border = self.border(&border).unwrap_or(border);
        Some(Stmt::If(Arc::new(If { condition, then: inside, otherwise: Some(border) })))
    }

    /// A nest that is not inside as a whole. A sum is asked again within, since the elements that are added at a time may be.
    fn border(&mut self, nest: &Stmt) -> Option<Stmt> {
        if let Stmt::For(node) = nest
            && adds_up(node)
        {
            let body = self.inside(node, |split| split.stmt(&node.body))?;
            return Some(Stmt::For(Arc::new(For { body, ..(**node).clone() })));
        }
        let was_border = std::mem::replace(&mut self.is_border, true);
        let border = self.stmt(nest);
        self.is_border = was_border;
        border
    }

    fn cut(&mut self, node: &For) -> Option<Stmt> {
        let border = find_border(node)?;
        let cost = written_out_size(&node.body);
        if cost > self.budget {
            return None;
        }
        self.budget -= cost;
        let pieces = cut(self.program, node, &border).map(|mut piece| {
            simplify_stmt(&mut piece, &self.outer);
            self.stmt(&piece).unwrap_or(piece)
        });
        Some(Stmt::seq(pieces))
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
                    || (!adds_up(node) && self.inside(node, |split| split.covers(&node.body)))
            }
            _ => stmt.children().into_iter().all(|child| self.covers(child)),
        }
    }

    /// The reaches of the comparisons in a nest, when a question before it is worth while.
    fn interior_of(&self, node: &Arc<For>) -> Option<Vec<Index>> {
        let mut reaches: Vec<Index> = Vec::new();
        let mut spared = 0;
        for_each_comparison(&Stmt::For(node.clone()), Place::Value, &mut Below::default(), &mut |found| {
            spared = spared.max(found.evaluations);
            if !reaches.contains(&found.reach) {
                reaches.push(found.reach);
            }
        });
        let is_decided_outside = reaches.iter().all(|reach| mentions_any(reach, &self.outer));
        if reaches.is_empty() || spared < LEAST_SPARED || !is_decided_outside {
            return None;
        }
        let share: f64 = reaches.iter().map(|reach| share_of_negative(reach, &self.outer)).product();
        (share >= LEAST_SHARE).then_some(reaches)
    }
}

/// Whether a loop adds to the same elements in all its iterations. A question inside would part the sums, which would have to
/// leave their registers.
fn adds_up(node: &For) -> bool {
    let stays = |store: &&Store| {
        !store.indices.iter().any(|index| index.mentions(node.var)) && reduction_of(store).is_some()
    };
    stores(&node.body).iter().any(stays)
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

//! A loop through a padded domain, cut where it enters the inside and where it leaves it.
//!
//! ```text
//! for h in 0..10 { y[h] = select(8·t + h >= 1, x[8·t + h - 1], 0) }
//! for h in 0..min(10, max(0, 1 - 8·t)) { y[h] = 0 }
//! for h in 0..10 - max(0, 1 - 8·t) { y[h + max(0, 1 - 8·t)] = x[8·t + h + max(0, 1 - 8·t) - 1] }
//! ```
//!
//! Loops that fill a buffer are cut, and those from one tile of sums to the next, whose tiles at the border get
//! constants for places. In a loop that adds up, one piece would wait for the sums of the other, which would have to leave their
//! registers.

use rustc_hash::FxHashSet;

use crate::analysis::block::{loads, stores};
use crate::expr::Expr;
use crate::ids::{BufferId, VarId};
use crate::index::{Index, Ranges};
use crate::lower::pass::loops::peel_boundaries::is_step;
use crate::lower::util::comparison::{Below, Comparison, Place, decide, for_each_comparison, mentions_any};
use crate::lower::util::copy::copy;
use crate::lower::util::shorten::loop_over;
use crate::program::Program;
use crate::stmt::{For, LoopKind, Stmt};
use crate::visit::substitute_stmt;

/// How many evaluations of a comparison a cut must spare.
const LEAST_SPARED: i64 = 4;

/// The longest loop in which a border is looked for by trying iterations.
const LONGEST_SEARCHED: i64 = 1 << 16;

/// Where a loop is cut.
pub(super) struct Border {
    /// The number of iterations before.
    before: Index,
    /// The reach, seen from inside the loop, of the comparisons that hold on one side and fail on the other, and
    /// whether they hold before; `None` where the lengths of the pieces show it.
    decided: Option<(Index, bool)>,
}

/// The first border in a loop, if it fills a buffer or leads through tiles of sums, and a cut is worth while.
pub(super) fn find_border(node: &For) -> Option<Border> {
    if node.kind != LoopKind::Serial || node.extent.is(1) {
        return None;
    }
    if !only_fills(&node.body) {
        return border_of_tiles(node);
    }
    let length = node.extent.as_constant().unwrap_or(i64::MAX);
    let mut found = None;
    for_each_comparison(&node.body, Place::Value, &mut Below::default(), &mut |comparison| {
        if found.is_none() && comparison.evaluations.saturating_mul(length) >= LEAST_SPARED {
            found = exact_border(&comparison, node.var).or_else(|| searched_border(&comparison, node));
        }
    });
    found
}

/// The first border in a loop through tiles of sums, if that loop and those of a tile alone decide about it: the tiles at the
/// border then have constants for places, which decide most of their comparisons.
fn border_of_tiles(node: &For) -> Option<Border> {
    if !is_step(node) {
        return None;
    }
    let mut steps = Ranges::new();
    collect_steps(&node.body, &mut steps);
    let mut found = None;
    for_each_comparison(&node.body, Place::Value, &mut Below::default(), &mut |comparison| {
        let is_of_tile = !mentions_any(&comparison.difference, &steps);
        if found.is_none() && is_of_tile && comparison.evaluations >= LEAST_SPARED {
            found = searched_border(&comparison, node);
        }
    });
    found
}

fn collect_steps(stmt: &Stmt, steps: &mut Ranges) {
    if let Stmt::For(node) = stmt
        && is_step(node)
    {
        steps.insert_loop(node);
    }
    stmt.children().into_iter().for_each(|child| collect_steps(child, steps));
}

/// The pieces of a loop, one after the other. Either may have no iterations when it runs, though never less than none: unrolling
/// divides their number.
pub(super) fn cut(program: &mut Program, node: &For, border: &Border) -> [Stmt; 2] {
    let skipped = border.before.maximum(&Index::constant(0));
    let (mut first, mut second) = (node.body.clone(), node.body.clone());
    if let Some((reach, holds_before)) = &border.decided {
        first = decided(&first, reach, *holds_before);
        second = decided(&second, reach, !holds_before);
    }
    let later = &Index::var(node.var) + &skipped;
    substitute_stmt(&mut second, &|var| (var == node.var).then(|| later.clone()));
    let piece = |extent: Index, body: Stmt| loop_over(For { extent, body, ..node.clone() });
    let before = piece(node.extent.minimum(&skipped), first);
    let after = piece((&node.extent - &skipped).maximum(&Index::constant(0)), second);
    [before, copy(program, &after)]
}

/// The body of a piece in which the comparisons of a reach hold, or fail.
fn decided(body: &Stmt, reach: &Index, holds: bool) -> Stmt {
    // Where the largest difference is not negative, only what does not vary is known to fail.
    decide(body, reach, &mut |found| {
        let is_known = holds || found.inner.is(0);
        is_known.then(|| Expr::bool(holds))
    })
}

/// Whether nothing is read that is written there.
fn only_fills(stmt: &Stmt) -> bool {
    let written: FxHashSet<BufferId> = stores(stmt).iter().map(|store| store.buffer).collect();
    !loads(stmt).iter().any(|access| written.contains(&access.buffer))
}

/// Where a comparison changes that depends on the loop and loops around it alone.
fn exact_border(comparison: &Comparison, var: VarId) -> Option<Border> {
    let Comparison { difference, inner, reach, .. } = comparison;
    let coefficient = difference.linear_coefficient(var).filter(|_| inner.is(0))?;
    let rest = difference.add_scaled(&Index::var(var), -coefficient);
    // The difference is negative before this place, or from there on.
    let (before, holds_before) = match coefficient {
        0 => return None,
        1.. => (rest.scale(-1).ceil_div(coefficient), true),
        _ => (rest.floor_div(coefficient.checked_neg()?).offset(1), false),
    };
    Some(Border { before, decided: Some((reach.clone(), holds_before)) })
}

/// Where a comparison begins or ceases to be the same for all iterations of the loops inside. Found by trying
/// iterations, for it may divide the number of the iteration.
fn searched_border(comparison: &Comparison, node: &For) -> Option<Border> {
    let Comparison { difference, below, .. } = comparison;
    let length = node.extent.as_constant().filter(|length| (2..=LONGEST_SEARCHED).contains(length))?;
    let mut is_known = difference.mentions(node.var);
    difference.for_each_var(&mut |var| is_known &= var == node.var || below.contains(var));
    if !is_known {
        return None;
    }
    let truth_in = |iteration: i64| {
        let there = difference.substitute(&|var| (var == node.var).then(|| Index::constant(iteration)));
        truth(&there, below)
    };
    let (at_first, at_last) = (truth_in(0), truth_in(length - 1));
    if at_first == at_last {
        return None;
    }
    // The end of what is like the first iteration, or the beginning of what is like the last one.
    let (wanted, is_first) = if at_first.is_some() { (at_first, true) } else { (at_last, false) };
    let (mut low, mut high) = (0, length - 1);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if (truth_in(middle) == wanted) == is_first { low = middle } else { high = middle }
    }
    Some(Border { before: Index::constant(high), decided: None })
}

/// Whether a difference is always negative, or never.
fn truth(difference: &Index, ranges: &Ranges) -> Option<bool> {
    let values = difference.interval(ranges);
    if values.max < 0 {
        return Some(true);
    }
    (values.min >= 0).then_some(false)
}

//! A loop through a padded domain, cut where it enters the interior and where it leaves it.
//!
//! ```text
//! for h in 0..10 { y[h] = select(8·t + h >= 1, x[8·t + h - 1], 0) }
//! for h in 0..min(10, max(0, 1 - 8·t)) { y[h] = 0 }
//! for h in 0..10 - max(0, 1 - 8·t) { y[h + max(0, 1 - 8·t)] = x[8·t + h + max(0, 1 - 8·t) - 1] }
//! ```
//!
//! The pass cuts loops that fill a buffer, and loops over tiles of accumulators; in the tiles at the boundary, indices become
//! constants. Between the pieces of a reduction loop the accumulators leave their registers: it is cut only where one piece is long, as
//! in front of the last vector of a row. A loop with a guard is cut in front of its last tile.

use rustc_hash::FxHashSet;

use crate::analysis::block::{loads, stores};
use crate::expr::Expr;
use crate::ids::{BufferId, VarId};
use crate::index::{Index, Ranges};
use crate::lower::pass::loops::peel_boundaries::{is_step, is_sum};
use crate::lower::util::comparison::{
    Below, Comparison, ComparisonSite, decide, for_each_comparison, mentions_any,
};
use crate::lower::util::copy::copy;
use crate::lower::util::shorten::loop_over;
use crate::program::Program;
use crate::stmt::{For, LoopKind, Stmt};
use crate::visit::substitute_stmt;

/// A cut must save at least this many evaluations of a comparison.
const LEAST_SPARED: i64 = 4;

/// The longer piece of a reduction loop has at least this many iterations.
const LEAST_REDUCED: i64 = 3;

/// The longest loop in which a cut point is searched for by trying iterations.
const LONGEST_SEARCHED: i64 = 1 << 16;

/// Where a loop is cut.
pub(super) struct CutPoint {
    /// The number of iterations before the cut.
    before: Index,
    /// The reach, seen from inside the loop, of the comparisons that hold on one side and fail on the other, and
    /// whether they hold before the cut; `None` where the lengths of the pieces show it.
    decided: Option<(Index, bool)>,
    /// Where the comparison stands.
    pub(super) site: ComparisonSite,
}

/// The first cut point of a loop, if a cut is worth its code: for a comparison in a value, if the loop fills a buffer, runs over tiles of
/// accumulators or is the reduction loop of a tile, and otherwise for a guard.
pub(super) fn find_cut_point(node: &For) -> Option<CutPoint> {
    if node.kind != LoopKind::Serial || node.extent.is(1) {
        return None;
    }
    let of_value = match only_fills(&node.body) {
        true => cut_point_of_filling(node),
        false => cut_point_between_tiles(node).or_else(|| cut_point_of_reduction(node)),
    };
    of_value.or_else(|| cut_point_of_guard(node))
}

/// The first cut point of a loop that fills a buffer.
fn cut_point_of_filling(node: &For) -> Option<CutPoint> {
    let length = node.extent.as_constant().unwrap_or(i64::MAX);
    first_cut_point(node, ComparisonSite::Value, &|comparison| {
        let is_worth_it = comparison.evaluations.saturating_mul(length) >= LEAST_SPARED;
        let point = || exact_cut_point(comparison, node.var).or_else(|| searched_cut_point(comparison, node));
        is_worth_it.then(point).flatten()
    })
}

/// The first cut point that `find` finds for a comparison in the body of a loop.
fn first_cut_point(
    node: &For,
    site: ComparisonSite,
    find: &dyn Fn(&Comparison) -> Option<CutPoint>,
) -> Option<CutPoint> {
    let mut found = None;
    for_each_comparison(&node.body, site, &mut Below::default(), &mut |comparison| {
        if found.is_none() {
            found = find(&comparison);
        }
    });
    found
}

/// The first cut point of a loop over tiles of accumulators, if the comparison depends on that loop and on loops inside a tile
/// only: indices in the tiles at the boundary then become constants, which decide most of their comparisons.
fn cut_point_between_tiles(node: &For) -> Option<CutPoint> {
    if !is_step(node) {
        return None;
    }
    let mut steps = Ranges::new();
    collect_steps(&node.body, &mut steps);
    first_cut_point(node, ComparisonSite::Value, &|comparison| {
        let is_of_tile = !mentions_any(&comparison.difference, &steps);
        let is_worth_it = is_of_tile && comparison.evaluations >= LEAST_SPARED;
        is_worth_it.then(|| searched_cut_point(comparison, node)).flatten()
    })
}

/// The first cut point of the reduction loop of a tile, if it is at a known iteration and leaves a long piece.
fn cut_point_of_reduction(node: &For) -> Option<CutPoint> {
    if !is_sum(node) {
        return None;
    }
    first_cut_point(node, ComparisonSite::Value, &|comparison| {
        let point = searched_cut_point(comparison, node)?;
        (longer_piece(node, &point)? >= LEAST_REDUCED).then_some(point)
    })
}

/// The first cut point for a guard, if it is at a known iteration. The longer piece then has tiles of a constant size.
fn cut_point_of_guard(node: &For) -> Option<CutPoint> {
    first_cut_point(node, ComparisonSite::Guard, &|comparison| {
        let point = searched_cut_point(comparison, node)?;
        let saved = longer_piece(node, &point)?.saturating_mul(comparison.evaluations);
        (saved >= LEAST_SPARED).then_some(CutPoint { site: ComparisonSite::Guard, ..point })
    })
}

/// The last iteration of a parallel loop, where it is the only one in which guards fail.
pub(super) fn last_tile(node: &For) -> Option<i64> {
    let length = node.extent.as_constant().filter(|_| node.kind == LoopKind::Parallel)?;
    let before = cut_point_of_guard(node)?.before.as_constant()?;
    (before == length - 1).then_some(before)
}

/// The number of iterations of the longer piece of a loop.
fn longer_piece(node: &For, point: &CutPoint) -> Option<i64> {
    let (length, before) = (node.extent.as_constant()?, point.before.as_constant()?);
    Some(before.max(length - before))
}

fn collect_steps(stmt: &Stmt, steps: &mut Ranges) {
    if let Stmt::For(node) = stmt
        && is_step(node)
    {
        steps.insert_loop(node);
    }
    stmt.children().into_iter().for_each(|child| collect_steps(child, steps));
}

/// The two pieces of a loop. Either may have no iterations at run time, but never a negative number: unrolling divides the
/// number.
pub(super) fn cut(program: &mut Program, node: &For, point: &CutPoint) -> [Stmt; 2] {
    let skipped = point.before.maximum(&Index::constant(0));
    let (mut first, mut second) = (node.body.clone(), node.body.clone());
    if let Some((reach, holds_before)) = &point.decided {
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
    // Where the largest difference is not negative, only a comparison that does not vary is known to fail.
    decide(body, reach, &mut |found| {
        let is_known = holds || found.inner.is(0);
        is_known.then(|| Expr::bool(holds))
    })
}

/// Whether the statement reads no buffer that it writes.
fn only_fills(stmt: &Stmt) -> bool {
    let written: FxHashSet<BufferId> = stores(stmt).iter().map(|store| store.buffer).collect();
    !loads(stmt).iter().any(|access| written.contains(&access.buffer))
}

/// The iteration where a comparison changes that depends on the loop and on loops around it only.
fn exact_cut_point(comparison: &Comparison, var: VarId) -> Option<CutPoint> {
    let Comparison { difference, inner, reach, .. } = comparison;
    let coefficient = difference.linear_coefficient(var).filter(|_| inner.is(0))?;
    let rest = difference.add_scaled(&Index::var(var), -coefficient);
    // The difference is negative before this iteration, or from it on.
    let (before, holds_before) = match coefficient {
        0 => return None,
        1.. => (rest.scale(-1).ceil_div(coefficient), true),
        _ => (rest.floor_div(coefficient.checked_neg()?).offset(1), false),
    };
    Some(CutPoint { before, decided: Some((reach.clone(), holds_before)), site: ComparisonSite::Value })
}

/// The iteration where a comparison begins or ceases to have one value for all iterations of the loops inside. It is found by
/// trying iterations, because the comparison may divide the loop variable.
fn searched_cut_point(comparison: &Comparison, node: &For) -> Option<CutPoint> {
    let Comparison { difference, below, .. } = comparison;
    let length = node.extent.as_constant().filter(|length| (2..=LONGEST_SEARCHED).contains(length))?;
    let mut is_known = difference.mentions(node.var);
    difference.for_each_var(&mut |var| is_known &= var == node.var || below.contains(var));
    if !is_known {
        return None;
    }
    let value_in = |iteration: i64| {
        let there = difference.substitute(&|var| (var == node.var).then(|| Index::constant(iteration)));
        value(&there, below)
    };
    let (at_first, at_last) = (value_in(0), value_in(length - 1));
    if at_first == at_last {
        return None;
    }
    // The end of what is like the first iteration, or the beginning of what is like the last one.
    let (wanted, is_first) = if at_first.is_some() { (at_first, true) } else { (at_last, false) };
    let (mut low, mut high) = (0, length - 1);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if (value_in(middle) == wanted) == is_first { low = middle } else { high = middle }
    }
    Some(CutPoint { before: Index::constant(high), decided: None, site: ComparisonSite::Value })
}

/// The value of a comparison: true when the difference is always negative, false when it never is.
fn value(difference: &Index, ranges: &Ranges) -> Option<bool> {
    let values = difference.interval(ranges);
    if values.max < 0 {
        return Some(true);
    }
    (values.min >= 0).then_some(false)
}

//! Loops without guards where no guard can fail.
//!
//! ```text
//! for t { unrolled for i in 0..4 { if 4·t + i < M { … } } }
//! for t { if 4·t + 3 < M { unrolled for i in 0..4 { … } } else { for i in 0..M % 4 { … } } }
//! ```
//!
//! Done for guards that unrolled or vectorized loops decide: code for registers must not test them. The split
//! stands right inside the innermost other loop that the guard depends on. The rest
//! is one partial tile when the tiles lie side by side, so that its size does not depend on
//! loops and is often constant.

mod tail;

use std::sync::Arc;

use crate::analysis::access::is_indivisible;
use crate::analysis::block::reduction_of;
use crate::expr::Expr;
use crate::ids::VarId;
use crate::index::{Base, Index, Ranges, greatest_common_divisor};
use crate::lower::pass::loops::partition_loops::tail::{Part, loops_over_part};
use crate::lower::util::comparison::{
    Below, Comparison, ComparisonSite, decide, for_each_comparison, mentions_any, written_out_size,
};
use crate::lower::util::condition::is_negative;
use crate::lower::util::copy::copy;
use crate::lower::util::shorten::{Lengths, clamp};
use crate::lower::util::unreached::remove_unreached;
use crate::lower::{LowerError, LowerOptions};
use crate::program::{Program, Scope};
use crate::simplify::simplify_stmt;
use crate::stmt::{Alloc, If, LoopKind, Stmt};
use crate::target::TargetKind;
use crate::visit::{for_each_stmt, substitute_stmt};

/// Separates full tiles from partial ones.
pub(in crate::lower) fn partition_loops(
    program: &mut Program,
    options: &LowerOptions,
) -> Result<(), LowerError> {
    let body = std::mem::replace(&mut program.body, Stmt::nothing());
    let budget = Budget { sums: options.max_cut_statements, others: options.max_partition_statements };
    let is_for_lanes_alone = options.kind == TargetKind::Gpu;
    let (outer, settled) = (Ranges::new(), Vec::new());
    let body = Partition { program, outer, settled, budget, is_for_lanes_alone }.split(&body);
    program.body = body;
    remove_unreached(program);
    Ok(())
}

struct Partition<'p> {
    program: &'p mut Program,
    /// The loops around the current statement.
    outer: Ranges,
    /// The reaches of comparisons that were split around the current statement.
    settled: Vec<Index>,
    budget: Budget,
    /// Whether guards of unrolled loops stay: each is a predicate on a GPU, which costs a thread less than a second version of the
    /// code costs its warp.
    is_for_lanes_alone: bool,
}

/// How many more statements may be made. Sums have a budget of their own: a tile of accumulators that is not split stays out of registers, which costs more
/// than a copy with guards, and copies often come first. It is as large as that of cuts, which leave their guards to this pass when they exceed it.
struct Budget {
    sums: usize,
    others: usize,
}

impl Budget {
    /// Takes the cost of a second version of a statement; false when too little is left.
    fn pay(&mut self, stmt: &Stmt, cost: usize) -> bool {
        let mut has_sum = false;
        for_each_stmt(stmt, &mut |node| {
            has_sum |= matches!(node, Stmt::Store(store) if reduction_of(store).is_some());
        });
        let left = if has_sum { &mut self.sums } else { &mut self.others };
        let rest = left.checked_sub(cost);
        *left = rest.unwrap_or(*left);
        rest.is_some()
    }
}

impl Partition<'_> {
    /// Splits the body of a loop, or of the program, and the loops inside. Neighbours with
    /// comparisons of the same reach are split together.
    fn split(&mut self, stmt: &Stmt) -> Stmt {
        let stmts = match stmt {
            Stmt::Seq(stmts) => &stmts[..],
            single => std::slice::from_ref(single),
        };
        let mut done = Vec::new();
        let mut rest = stmts;
        while let [first, after @ ..] = rest {
            if let Stmt::Alloc(node) = first
                && self.concerns_a_part(&node.body)
            {
                let body = self.split(&node.body);
                done.push(Stmt::Alloc(Arc::new(Alloc { buffer: node.buffer, body })));
                rest = after;
                continue;
            }
            let Some(found) = self.first_comparison(first) else {
                done.push(self.descend(first));
                rest = after;
                continue;
            };
            let together =
                1 + after.iter().rposition(|next| self.has_reach(next, &found)).map_or(0, |last| last + 1);
            let group = Stmt::seq(rest[..together].iter().cloned());
            done.push(self.split_at(&group, &found));
            rest = &rest[together..];
        }
        Stmt::seq(done)
    }

    /// Whether only some statements of a sequence have the first comparison in it.
    fn concerns_a_part(&self, body: &Stmt) -> bool {
        let (Stmt::Seq(stmts), Some(found)) = (body, self.first_comparison(body)) else { return false };
        !stmts.iter().all(|stmt| self.has_reach(stmt, &found))
    }

    fn split_at(&mut self, stmt: &Stmt, found: &Comparison) -> Stmt {
        let cost = written_out_size(stmt);
        // Grids stay whole, and threads that wait for each other must not take different branches.
        if is_indivisible(stmt) || !self.budget.pay(stmt, cost) {
            return self.descend(stmt);
        }
        let full = decide(stmt, &found.reach, &mut |_| Some(Expr::bool(true)));
        let then = self.split(&full);
        self.settled.push(found.reach.clone());
        let otherwise = self.remainder(stmt, found);
        self.settled.pop();
        choose(is_negative(&found.reach), then, otherwise)
    }

    /// Splits the bodies of the loops inside a statement.
    fn descend(&mut self, stmt: &Stmt) -> Stmt {
        let mut stmt = stmt.clone();
        if let Stmt::For(node) = &mut stmt {
            let node = Arc::make_mut(node);
            self.outer.insert_loop(node);
            node.body = self.split(&node.body);
            self.outer.remove(node.var);
            return stmt;
        }
        for child in stmt.children_mut() {
            *child = self.descend(child);
        }
        stmt
    }

    /// The first comparison inside a statement that unrolled or vectorized loops decide, and that holds
    /// throughout for some iterations of the loops around.
    fn first_comparison(&self, stmt: &Stmt) -> Option<Comparison> {
        let mut first = None;
        for_each_comparison(stmt, ComparisonSite::Guard, &mut Below::default(), &mut |found| {
            let is_hot = found.is_hot && (found.has_lanes || !self.is_for_lanes_alone);
            if first.is_none() && is_hot && self.is_worthwhile(&found) {
                first = Some(found);
            }
        });
        first
    }

    fn is_worthwhile(&self, found: &Comparison) -> bool {
        mentions_any(&found.reach, &self.outer)
            && !self.settled.contains(&found.reach)
            && !found.reach.is_provably_nonnegative(&self.outer)
    }

    fn has_reach(&self, stmt: &Stmt, wanted: &Comparison) -> bool {
        let mut has = false;
        for_each_comparison(stmt, ComparisonSite::Guard, &mut Below::default(), &mut |found| {
            has |= found.reach == wanted.reach
        });
        has
    }

    /// The statement for iterations where comparisons of the reach of `found` do not always hold.
    fn remainder(&mut self, stmt: &Stmt, found: &Comparison) -> Stmt {
        let stmt = copy(self.program, stmt);
        let Some(tile) = last_tile(found, &self.outer) else {
            return self.split(&stmt);
        };
        let partial = self.partial_tile(&stmt, found, &tile);
        if tile.start.is_provably_less(&Index::constant(0), &self.outer) {
            return partial.unwrap_or_else(Stmt::nothing);
        }
        let outside = copy(self.program, &stmt);
        let outside = decide(&outside, &found.reach, &mut |comparison| {
            let own = last_tile(comparison, &self.outer)?;
            own.starts_no_earlier_than(&tile).then(|| Expr::bool(false))
        });
        let outside = self.split(&outside);
        match partial {
            Some(partial) => choose(is_negative(&tile.start), partial, outside),
            None => outside,
        }
    }

    /// The statement in the tile where comparisons begin to fail; `None` when no iteration is there.
    fn partial_tile(&mut self, stmt: &Stmt, found: &Comparison, tile: &Tile) -> Option<Stmt> {
        if let Some(loops) = self.loops_over_part(stmt, found, tile) {
            return Some(Stmt::seq(loops));
        }
        let mut decided_by: Vec<Vec<VarId>> = Vec::new();
        let mut stmt = decide(stmt, &found.reach, &mut |comparison| {
            let own = last_tile(comparison, &self.outer)?;
            if !tile.starts_no_earlier_than(&own) {
                return None;
            }
            let mut vars = Vec::new();
            comparison.inner.for_each_var(&mut |var| vars.push(var));
            decided_by.push(vars);
            Some(is_negative(&comparison.inner.offset(-own.lowest).add_scaled(&own.count, -1)))
        });
        if let Some((var, value)) = &tile.place {
            let extent = self.outer.constant_extent(*var);
            if *value < 0 || extent.is_some_and(|extent| *value >= extent) {
                return None;
            }
            substitute_stmt(&mut stmt, &|other| (other == *var).then(|| Index::constant(*value)));
            simplify_stmt(&mut stmt, &self.outer);
        }
        if tile.count.as_constant().is_none() {
            let keeps_unrolled = self.uses_outer_registers(&stmt);
            for vars in &decided_by {
                // A test for all lanes of a longer loop at once is still possible.
                if vars.len() == 1 {
                    make_serial(&mut stmt, vars, LoopKind::Vectorized);
                }
                if !keeps_unrolled {
                    make_serial(&mut stmt, vars, LoopKind::Unrolled);
                }
            }
        }
        clamp(&mut stmt, Lengths::Constant);
        Some(self.split(&stmt))
    }

    /// A tile of unknown length as loops over code of fixed size, when its iterations are independent.
    fn loops_over_part(&mut self, stmt: &Stmt, found: &Comparison, tile: &Tile) -> Option<Vec<Stmt>> {
        let (full, count) = tile.part.clone()?;
        let decides = |comparison: &Comparison| {
            last_tile(comparison, &self.outer)
                .is_some_and(|own| own.lowest == tile.lowest && (&own.start - &tile.start).is(0))
        };
        let part = Part { reach: &found.reach, full, count, decides: &decides };
        let loops = loops_over_part(self.program, stmt, &part)?;
        let cost = loops.iter().map(written_out_size).sum();
        if !self.budget.pay(stmt, cost) {
            return None;
        }
        Some(loops.iter().map(|node| self.descend(node)).collect())
    }

    /// Whether a statement uses a thread's own buffer from outside: its elements are named one by one
    /// for as long as its loops are written out.
    fn uses_outer_registers(&self, stmt: &Stmt) -> bool {
        let (mut inside, mut used) = (Vec::new(), Vec::new());
        for_each_stmt(stmt, &mut |node| match node {
            Stmt::Alloc(node) => inside.push(node.buffer),
            Stmt::Store(node) => used.push(node.buffer),
            _ => {}
        });
        used.iter()
            .any(|buffer| self.program.buffer(*buffer).scope == Scope::Local && !inside.contains(buffer))
    }
}

/// A tile in which a comparison holds for its first iterations only.
struct Tile {
    /// The smallest value of the comparison's inner part.
    lowest: i64,
    /// For how many values of the inner part, from the lowest, the comparison holds.
    count: Index,
    /// The number of values of the inner part, and for how many of them the comparison holds where it does
    /// not for all, when tiles lie side by side, their values are numbered from 0 and the number is unknown.
    part: Option<(i64, Index)>,
    /// Negative where the comparison holds for any iteration at all.
    start: Index,
    /// The enclosing loop that is at a known iteration there, and that iteration.
    place: Option<(VarId, i64)>,
}

impl Tile {
    /// Whether, wherever this tile's comparison holds for some iteration, so does the other's. Both are of
    /// one reach.
    fn starts_no_earlier_than(&self, other: &Tile) -> bool {
        (&self.start - &other.start).as_constant().is_some_and(|distance| distance >= 0)
    }
}

/// A conditional, with `else` only where it has statements.
fn choose(condition: Expr, then: Stmt, otherwise: Stmt) -> Stmt {
    let otherwise = (!otherwise.is_nothing()).then_some(otherwise);
    Stmt::If(Arc::new(If { condition, then, otherwise }))
}

/// The only tile in which a comparison holds for some iterations and fails for others, if there is only
/// one: its place is a multiple of the tiles' distance, and tiles are not longer than that.
fn last_tile(comparison: &Comparison, around: &Ranges) -> Option<Tile> {
    let interval = comparison.inner.interval(&comparison.below);
    let outer = &comparison.difference - &comparison.inner;
    if !interval.is_bounded() || outer.offset(interval.max) != comparison.reach {
        return None;
    }
    let (mut distance, mut fixed) = (0, Index::constant(outer.constant_part()));
    for term in outer.terms() {
        let part = Index::from_terms([term.clone()], 0);
        if mentions_any(&part, around) {
            distance = greatest_common_divisor(distance, term.coefficient);
        } else {
            fixed = &fixed + &part;
        }
    }
    if distance == 0 || distance < interval.max - interval.min {
        return None;
    }
    let last = fixed.offset(interval.min + 1).scale(-1);
    let count = last.modulo(distance).offset(1);
    let is_numbered = interval.min == 0 && distance == interval.max + 1 && count.as_constant().is_none();
    let part = is_numbered.then(|| (distance, last.offset(1).modulo(distance)));
    let moving = &outer - &fixed;
    let place = match (moving.terms(), last.as_constant()) {
        ([term], Some(last)) if term.digit.is_whole() => match term.digit.base {
            Base::Var(var) => Some((var, last.div_euclid(distance) * distance / term.coefficient)),
            _ => None,
        },
        _ => None,
    };
    Some(Tile { lowest: interval.min, count, part, start: outer.offset(interval.min), place })
}

/// Makes the loops of a kind and some variables serial.
fn make_serial(stmt: &mut Stmt, vars: &[VarId], kind: LoopKind) {
    if let Stmt::For(node) = stmt
        && node.kind == kind
        && vars.contains(&node.var)
    {
        Arc::make_mut(node).kind = LoopKind::Serial;
    }
    for child in stmt.children_mut() {
        make_serial(child, vars, kind);
    }
}

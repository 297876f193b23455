//! Leaves out the terms of a reduction that are neutral, such as products with padding.
//!
//! ```text
//! for k in 0..3 { for c { unrolled for n in 0..7 { y[n] = y[n] + select(k + n >= 1 & k + n < 8, x[k + n - 1, c], 0.0) * w[k, c] } } }
//!
//! for c { unrolled for n in 0..7 { if n >= 1 { y[n] = y[n] + x[n - 1, c] * w[0, c] } } }
//! for c { unrolled for n in 0..7 { y[n] = y[n] + x[n, c] * w[1, c] } }
//! for c { unrolled for n in 0..7 { if n < 6 { y[n] = y[n] + x[n + 1, c] * w[2, c] } } }
//! ```
//!
//! A condition that holds or fails for a whole tile of accumulators becomes a guard around the tile. One that differs between the
//! iterations of a tile's unrolled loops does so where the loop over taps has been [cut](taps) into its iterations: unrolling then
//! decides it. Where the place of a tile is known only when the kernel runs, a [branch](place) tells the places at the border apart. A
//! condition that stays undecided keeps its form.
//!
//! A tensor that is stored with its padding has [elements that are known to be zero](crate::analysis::zeros), whose products are left
//! out in the same way. To the loops around it, a marked statement is a store of vectors.

mod place;
mod taps;

use std::sync::Arc;

use crate::analysis::block::reduction_of;
use crate::analysis::condition::{difference, without_places_in_tile};
use crate::analysis::neutral::{Products, conditions_of_term};
use crate::analysis::zeros::ZeroElements;
use crate::expr::Expr;
use crate::ids::VarId;
use crate::index::{Index, Ranges};
use crate::intrinsic::marked_store;
use crate::lower::pass::loops::leave_out_padding::place::{Place, at};
use crate::lower::pass::loops::peel_boundaries::is_sum;
use crate::lower::util::condition::{is_negative, under_guards};
use crate::lower::{LowerError, LowerOptions};
use crate::program::Program;
use crate::simplify::simplify_expr;
use crate::stmt::{Alloc, For, If, Intrinsic, LoopKind, Stmt, Store};
use crate::target::TargetKind;
use crate::visit::rewrite_expr;

/// Leaves out neutral terms of sums. Threads of a GPU take a branch together, so that one around a tile of accumulators costs
/// them more than the loads that it spares.
pub(in crate::lower) fn leave_out_padding(
    program: &mut Program,
    options: &LowerOptions,
) -> Result<(), LowerError> {
    if options.kind != TargetKind::Cpu {
        return Ok(());
    }
    let terms = Terms {
        products: Products::of(program),
        zeros: ZeroElements::default(),
        holding: Vec::new(),
        places: Vec::new(),
    };
    let body = std::mem::replace(&mut program.body, Stmt::nothing());
    let budget = options.max_partition_statements;
    let body = Sums { program, terms, outer: Ranges::new(), budget }.stmt(&body).unwrap_or(body);
    program.body = body;
    Ok(())
}

/// The terms of sums, and what is known about them.
struct Terms {
    products: Products,
    /// Of the intermediates that live around the current statement.
    zeros: ZeroElements,
    /// The differences of conditions that hold for the current statement.
    holding: Vec<Index>,
    /// The places that branches around the current statement have told apart.
    places: Vec<(Place, i64)>,
}

impl Terms {
    /// The differences without which the term of a store is neutral.
    fn conditions(&self, store: &Store) -> Vec<Index> {
        let mut conditions = conditions_of_term(store, self.products, &self.zeros);
        conditions.retain(|condition| !self.holding.contains(condition));
        if self.places.is_empty() {
            return conditions;
        }
        // The elements that are zero are known from a statement elsewhere, which names the place by the loop's variable.
        let at_places = |condition: Index| {
            self.places.iter().fold(condition, |condition, (place, number)| at(&condition, place, *number))
        };
        let always_holds = |condition: &Index| condition.as_constant().is_some_and(|value| value < 0);
        let mut conditions: Vec<Index> = conditions.into_iter().map(at_places).collect();
        conditions.retain(|condition| !self.holding.contains(condition) && !always_holds(condition));
        conditions
    }

    /// A nest of loops in which the comparisons that hold are gone; `None` when there are none.
    fn without_holding(&self, stmt: &Stmt) -> Option<Stmt> {
        match stmt {
            Stmt::Store(store) => {
                let value = with_holding(&store.value, &self.holding)?;
                Some(Stmt::Store(Arc::new(Store { value, ..Store::clone(store) })))
            }
            Stmt::For(node) => {
                let body = self.without_holding(&node.body)?;
                Some(Stmt::For(Arc::new(For { body, ..For::clone(node) })))
            }
            Stmt::If(node) => {
                let then = self.without_holding(&node.then)?;
                Some(Stmt::If(Arc::new(If { then, ..If::clone(node) })))
            }
            Stmt::Intrinsic(node) => {
                let body = self.without_holding(&node.body)?;
                Some(Stmt::Intrinsic(Arc::new(Intrinsic { body, ..Intrinsic::clone(node) })))
            }
            _ => None,
        }
    }
}

struct Sums<'p> {
    program: &'p mut Program,
    terms: Terms,
    /// The loops around the current statement.
    outer: Ranges,
    /// How many more statements may be made.
    budget: usize,
}

impl Sums<'_> {
    /// `None` when the statement stays as it is.
    fn stmt(&mut self, stmt: &Stmt) -> Option<Stmt> {
        match stmt {
            Stmt::Intrinsic(_) | Stmt::Store(_) | Stmt::Barrier | Stmt::Copies(_) | Stmt::Shuffle(_) => {
                return None;
            }
            // Its iterations are lanes, which take no branches of their own.
            Stmt::For(node) if node.kind == LoopKind::Vectorized => return None,
            Stmt::For(node) if is_sum(node) || is_sum_of_marked(stmt) => {
                if let Some(store) = only_store(stmt) {
                    return self.sum(stmt, store);
                }
            }
            _ => {}
        }
        if let Stmt::For(node) = stmt {
            let body = self.inside(node, |sums| sums.stmt(&node.body))?;
            return Some(Stmt::For(Arc::new(For { body, ..For::clone(node) })));
        }
        if let Stmt::Alloc(node) = stmt {
            self.terms.zeros.learn(self.program, node.buffer, &node.body);
            let body = self.stmt(&node.body);
            self.terms.zeros.forget(node.buffer);
            return Some(Stmt::Alloc(Arc::new(Alloc { body: body?, ..Alloc::clone(node) })));
        }
        let mut edited = None;
        for (position, child) in stmt.children().into_iter().enumerate() {
            if let Some(new) = self.stmt(child) {
                *edited.get_or_insert_with(|| stmt.clone()).children_mut().swap_remove(position) = new;
            }
        }
        edited
    }

    /// The outermost loop of a reduction that consists of one store.
    fn sum(&mut self, stmt: &Stmt, store: &Store) -> Option<Stmt> {
        if self.terms.conditions(store).is_empty() {
            return None;
        }
        if let Some(by_place) = self.by_place(stmt, store) {
            return Some(by_place);
        }
        let cut = self.cut_taps(stmt, store, true);
        let (guarded, outside) =
            Guards { terms: &self.terms, loops: Vec::new(), ranges: Ranges::new(), is_marked: false }
                .place(cut.as_ref().unwrap_or(stmt))
                .map(|Placed { stmt, pending }| (stmt, pending))
                .unzip();
        let stmt = guarded.or(cut)?;
        Some(under_guards(outside.unwrap_or_default().iter().map(is_negative), stmt))
    }

    /// Does something as if inside a loop.
    fn inside<T>(&mut self, node: &For, act: impl FnOnce(&mut Self) -> T) -> T {
        self.outer.insert_loop(node);
        let result = act(self);
        self.outer.remove(node.var);
        result
    }
}

/// The store of a perfect nest of loops and guards, which may be that of a marked statement with its sums in vectors.
fn only_store(mut stmt: &Stmt) -> Option<&Store> {
    loop {
        stmt = match stmt {
            Stmt::For(node) => &node.body,
            Stmt::If(node) if node.otherwise.is_none() => &node.then,
            Stmt::Intrinsic(node) => return marked_store(node),
            Stmt::Store(store) => return Some(store),
            _ => return None,
        }
    }
}

/// Whether this is a nest of reduction loops, and loops over a tile, around a marked statement.
fn is_sum_of_marked(stmt: &Stmt) -> bool {
    let Some(store) = only_store(stmt) else { return false };
    let is_of_tile = |node: &For| {
        let adds_up = !store.indices.iter().any(|index| index.mentions(node.var));
        node.kind == LoopKind::Unrolled || node.extent.is(1) || (node.kind == LoopKind::Serial && adds_up)
    };
    let mut inner = stmt;
    loop {
        inner = match inner {
            Stmt::For(node) if is_of_tile(node) => &node.body,
            Stmt::If(node) => &node.then,
            Stmt::Intrinsic(_) => return reduction_of(store).is_some(),
            _ => return false,
        }
    }
}

/// Moves the conditions of terms from values to guards.
struct Guards<'s> {
    terms: &'s Terms,
    /// The loops of the reduction around the current statement.
    loops: Vec<(VarId, LoopKind)>,
    /// Their ranges.
    ranges: Ranges,
    /// Whether the current statement is marked: its loops are lanes, so that guards stand around all of it.
    is_marked: bool,
}

/// A statement, and the differences of the guards that are to stand around it.
struct Placed {
    stmt: Stmt,
    pending: Vec<Index>,
}

impl Guards<'_> {
    /// `None` when the statement stays as it is.
    fn place(&mut self, stmt: &Stmt) -> Option<Placed> {
        match stmt {
            Stmt::Store(store) => self.of_store(store),
            Stmt::For(node) => {
                let kind = if self.is_marked { LoopKind::Vectorized } else { node.kind };
                self.loops.push((node.var, kind));
                self.ranges.insert_loop(node);
                let body = self.place(&node.body);
                self.ranges.remove(node.var);
                self.loops.pop();
                let Placed { stmt, pending } = body?;
                let (here, pending): (Vec<_>, Vec<_>) =
                    pending.into_iter().partition(|condition| condition.mentions(node.var));
                let body = under_guards(here.iter().map(is_negative), stmt);
                Some(Placed { stmt: Stmt::For(Arc::new(For { body, ..For::clone(node) })), pending })
            }
            Stmt::If(node) => {
                let Placed { stmt: then, pending } = self.place(&node.then)?;
                Some(Placed { stmt: Stmt::If(Arc::new(If { then, ..If::clone(node) })), pending })
            }
            Stmt::Seq(stmts) => self.of_sequence(stmts),
            Stmt::Intrinsic(node) => {
                self.is_marked = true;
                let body = self.place(&node.body);
                self.is_marked = false;
                let Placed { stmt: body, pending } = body?;
                let stmt = Stmt::Intrinsic(Arc::new(Intrinsic { body, ..Intrinsic::clone(node) }));
                Some(Placed { stmt, pending })
            }
            _ => None,
        }
    }

    /// Guards that all statements have stand around the sequence.
    fn of_sequence(&mut self, stmts: &[Stmt]) -> Option<Placed> {
        let placed: Vec<Option<Placed>> = stmts.iter().map(|stmt| self.place(stmt)).collect();
        if placed.iter().all(Option::is_none) {
            return None;
        }
        let pending =
            |placed: &Option<Placed>| placed.as_ref().map_or(Vec::new(), |placed| placed.pending.clone());
        let mut common = placed.first().map(pending).unwrap_or_default();
        common.retain(|condition| placed.iter().all(|placed| pending(placed).contains(condition)));
        let guarded = placed.into_iter().zip(stmts).map(|(placed, old)| {
            let Some(Placed { stmt, pending }) = placed else { return old.clone() };
            let own = pending.iter().filter(|condition| !common.contains(condition));
            under_guards(own.map(is_negative).collect::<Vec<_>>(), stmt)
        });
        Some(Placed { stmt: Stmt::seq(guarded), pending: common })
    }

    fn of_store(&self, store: &Arc<Store>) -> Option<Placed> {
        let (mut conditions, mut pending) = (Vec::new(), Vec::new());
        for condition in self.terms.conditions(store) {
            let guard = self.of_whole_tile(&condition).unwrap_or_else(|| condition.clone());
            if self.may_guard(&guard) {
                conditions.push(condition);
                pending.push(guard);
            }
        }
        if conditions.is_empty() {
            return None;
        }
        let value = with_holding(&store.value, &conditions).unwrap_or_else(|| store.value.clone());
        let stmt = Stmt::Store(Arc::new(Store { value, ..Store::clone(store) }));
        Some(Placed { stmt, pending })
    }

    /// A condition that has the same value in all iterations of the unrolled loops, without their variables.
    fn of_whole_tile(&self, condition: &Index) -> Option<Index> {
        let is_unrolled = |var: VarId| self.loops.contains(&(var, LoopKind::Unrolled));
        without_places_in_tile(condition, &is_unrolled, &self.ranges)
    }

    /// Whether a guard may stand inside the innermost loop that the condition mentions: no vector is made of different branches, and no
    /// branch is left in the written out code of a tile.
    fn may_guard(&self, condition: &Index) -> bool {
        let Some(innermost) = self.loops.iter().rposition(|(var, _)| condition.mentions(*var)) else {
            return true;
        };
        let around = &self.loops[..=innermost];
        if around.iter().any(|(_, kind)| *kind == LoopKind::Vectorized) {
            return false;
        }
        around[innermost].1 != LoopKind::Unrolled || {
            let mut is_decided = true;
            condition.for_each_var(&mut |var| is_decided &= around.contains(&(var, LoopKind::Unrolled)));
            is_decided
        }
    }
}

/// A value in which the comparisons hold.
fn with_holding(value: &Expr, conditions: &[Index]) -> Option<Expr> {
    let replaced = rewrite_expr(value, &mut |node| {
        let condition = difference(node)?;
        conditions.contains(&condition).then(|| Expr::bool(true))
    })?;
    Some(simplify_expr(&replaced, &Ranges::new()).unwrap_or(replaced))
}

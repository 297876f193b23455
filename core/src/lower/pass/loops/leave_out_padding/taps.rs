//! Loops over the taps of a filter, cut where the conditions of their products change.

use std::sync::Arc;

use crate::analysis::condition::without_places_in_tile;
use crate::ids::VarId;
use crate::index::{Index, Ranges};
use crate::lower::pass::loops::leave_out_padding::{Sums, only_store};
use crate::lower::util::comparison::written_out_size;
use crate::lower::util::copy::{copy, copy_with};
use crate::lower::util::shorten::loop_over;
use crate::simplify::simplify_stmt;
use crate::stmt::{For, LoopKind, Stmt, Store};
use crate::visit::substitute_stmt;

/// The longest loop that is cut.
const MOST_TAPS: i64 = 64;

/// Between the pieces of the outermost loop of a reduction, accumulators may leave their registers: each piece has at least this many
/// iterations inside.
const LEAST_ITERATIONS: i64 = 8;

/// The values of a condition in an iteration of a loop, while the loops inside run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    Always,
    Never,
    Differs,
}

/// Consecutive iterations in which all conditions have the same values.
struct Piece {
    first: i64,
    length: i64,
    holds: Vec<Holds>,
}

impl Piece {
    /// Whether the piece is one iteration, whose number becomes a constant.
    fn is_single(&self) -> bool {
        self.holds.contains(&Holds::Differs)
    }
}

impl Sums<'_> {
    /// The loops of a reduction, cut wherever this decides conditions of a tile; `None` when no loop is cut.
    pub(super) fn cut_taps(&mut self, stmt: &Stmt, store: &Store, is_outermost: bool) -> Option<Stmt> {
        match stmt {
            Stmt::For(node) => {
                if let Some(pieces) = self.pieces(node, store, is_outermost) {
                    return Some(self.cut(node, &pieces));
                }
                let body = self.inside(node, |sums| {
                    let is_outermost = is_outermost && node.extent.is(1);
                    sums.cut_taps(&node.body, store, is_outermost)
                })?;
                Some(Stmt::For(Arc::new(For { body, ..For::clone(node) })))
            }
            Stmt::If(node) => {
                let mut edited = node.clone();
                Arc::make_mut(&mut edited).then = self.cut_taps(&node.then, store, is_outermost)?;
                Some(Stmt::If(edited))
            }
            _ => None,
        }
    }

    /// Where a loop is cut, if that decides conditions and is worth its code.
    fn pieces(&mut self, node: &For, store: &Store, is_outermost: bool) -> Option<Vec<Piece>> {
        let is_reduction = !store.indices.iter().any(|index| index.mentions(node.var));
        let length = node.extent.as_constant().filter(|length| (2..=MOST_TAPS).contains(length))?;
        if node.kind != LoopKind::Serial || !is_reduction {
            return None;
        }
        let below = LoopsBelow::of(&node.body, store);
        if is_outermost && below.iterations < LEAST_ITERATIONS {
            return None;
        }
        let mut conditions = self.terms.conditions(store);
        conditions.retain(|condition| {
            let mut is_known = condition.mentions(node.var) && below.differs_in_tile(condition);
            condition.for_each_var(&mut |var| is_known &= var == node.var || below.ranges.contains(var));
            is_known
        });
        if conditions.is_empty() {
            return None;
        }
        let pieces = pieces(node, length, &conditions, &below.ranges);
        if pieces.iter().all(|piece| piece.holds.iter().all(|holds| *holds == Holds::Always)) {
            return None;
        }
        let copies = pieces.iter().filter(|piece| !piece.holds.contains(&Holds::Never)).count();
        let cost = written_out_size(&node.body).checked_mul(copies)?;
        self.budget = self.budget.checked_sub(cost)?;
        Some(pieces)
    }

    fn cut(&mut self, node: &For, pieces: &[Piece]) -> Stmt {
        let needed = pieces.iter().filter(|piece| !piece.holds.contains(&Holds::Never));
        let made: Vec<Stmt> = needed.map(|piece| self.piece(node, piece)).collect();
        Stmt::seq(made)
    }

    fn piece(&mut self, node: &For, piece: &Piece) -> Stmt {
        let mut made = if piece.is_single() {
            copy_with(self.program, &node.body, node.var, Index::constant(piece.first))
        } else {
            let (mut body, later) = (node.body.clone(), Index::var(node.var).offset(piece.first));
            substitute_stmt(&mut body, &|var| (var == node.var).then(|| later.clone()));
            let part = loop_over(For { extent: Index::constant(piece.length), body, ..node.clone() });
            copy(self.program, &part)
        };
        simplify_stmt(&mut made, &self.outer);
        let cut = only_store(&made).and_then(|store| self.cut_taps(&made, store, false));
        cut.unwrap_or(made)
    }
}

/// The loops inside a loop of a reduction.
pub(super) struct LoopsBelow {
    loops: Vec<(Index, LoopKind)>,
    pub(super) ranges: Ranges,
    /// The iterations of the reduction, as far as they are known.
    iterations: i64,
}

impl LoopsBelow {
    pub(super) fn of(mut stmt: &Stmt, store: &Store) -> Self {
        let mut below = LoopsBelow { loops: Vec::new(), ranges: Ranges::new(), iterations: 1 };
        loop {
            stmt = match stmt {
                Stmt::For(node) => {
                    below.loops.push((Index::var(node.var), node.kind));
                    below.ranges.insert_loop(node);
                    if !store.indices.iter().any(|index| index.mentions(node.var)) {
                        let extent = node.extent.as_constant().unwrap_or(LEAST_ITERATIONS);
                        below.iterations = below.iterations.saturating_mul(extent);
                    }
                    &node.body
                }
                Stmt::If(node) => &node.then,
                _ => return below,
            }
        }
    }

    /// Whether a condition may have different values in the iterations of unrolled loops, and the same in all lanes.
    pub(super) fn differs_in_tile(&self, condition: &Index) -> bool {
        let is_of_tile = |var: VarId| {
            self.loops.iter().any(|(own, kind)| *kind == LoopKind::Unrolled && own.as_var() == Some(var))
        };
        if without_places_in_tile(condition, &is_of_tile, &self.ranges).is_some() {
            return false;
        }
        let mentioned = |kind: LoopKind| {
            self.loops
                .iter()
                .any(|(var, own)| *own == kind && var.as_var().is_some_and(|var| condition.mentions(var)))
        };
        mentioned(LoopKind::Unrolled) && !mentioned(LoopKind::Vectorized)
    }
}

/// Cuts a loop between iterations in which conditions have different values, and around each in which one differs.
fn pieces(node: &For, length: i64, conditions: &[Index], below: &Ranges) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for iteration in 0..length {
        let holds: Vec<Holds> = conditions
            .iter()
            .map(|condition| {
                let there =
                    condition.substitute(&|var| (var == node.var).then(|| Index::constant(iteration)));
                holds(&there, below)
            })
            .collect();
        match pieces.last_mut() {
            Some(last) if last.holds == holds && !last.is_single() => last.length += 1,
            _ => pieces.push(Piece { first: iteration, length: 1, holds }),
        }
    }
    pieces
}

/// The values of a condition while the loops inside run.
pub(super) fn holds(condition: &Index, below: &Ranges) -> Holds {
    let values = condition.interval(below);
    match () {
        () if values.max < 0 => Holds::Always,
        () if values.min >= 0 => Holds::Never,
        () => Holds::Differs,
    }
}

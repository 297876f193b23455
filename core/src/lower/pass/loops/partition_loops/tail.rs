//! The last tile, of a length that is known only at run time, as loops around code of fixed size.
//!
//! ```text
//! unrolled for j in 0..2 { vectorized for l in 0..8 { if 16·t + 8·j + l < N { y[16·t + 8·j + l] = … } } }
//! for j in 0..N % 16 / 8 { vectorized for l in 0..8 { … } } for l in 0..N % 8 { … }
//! ```
//!
//! The loops that decide become the outermost ones of the tile. Loops around and beside them (of a reduction,
//! for its initial value) then stay around code of fixed size, whose elements registers can hold. This needs
//! iterations that have elements of their own: in one dimension of each buffer that the tile stores to, all
//! its accesses must have the number of the iteration at the same place.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::analysis::access::loads_from;
use crate::analysis::block::loads;
use crate::expr::{Expr, Indices};
use crate::ids::{BufferId, VarId};
use crate::index::{Base, Index};
use crate::lower::util::comparison::{Below, Comparison, decide};
use crate::lower::util::copy::copy;
use crate::program::{Program, VariableKind};
use crate::stmt::{Annotations, For, LoopKind, Stmt};
use crate::visit::{for_each_stmt, substitute_stmt};

/// The part of a tile that exists.
pub(super) struct Part<'a> {
    /// The reach of the comparisons that decide it.
    pub(super) reach: &'a Index,
    /// The number of iterations of a full tile.
    pub(super) full: i64,
    /// The number of iterations of this one: fewer.
    pub(super) count: Index,
    /// Whether a comparison of that reach holds for just these iterations.
    pub(super) decides: &'a dyn Fn(&Comparison) -> bool,
}

/// The loops whose variables, as the digits of one number, a comparison is about: variables with the weights
/// of their digits, greatest first.
type Digits = Vec<(VarId, i64)>;

/// Loops that execute `stmt` for such a tile, one after the other; `None` when its iterations may depend
/// on one another, or are not numbered by loops.
pub(super) fn loops_over_part(program: &mut Program, stmt: &Stmt, part: &Part<'_>) -> Option<Vec<Stmt>> {
    let mut search = Search { part, found: Vec::new(), stored: stored(stmt), accesses: Vec::new() };
    search.visit(stmt, &mut Below::default(), None)?;
    let Search { found, accesses, .. } = search;
    let weights: Vec<i64> = found.first()?.iter().map(|(_, weight)| *weight).collect();
    let inside = loop_vars(stmt);
    let are_alike =
        found.iter().all(|digits| digits.iter().map(|(_, weight)| *weight).eq(weights.iter().copied()));
    if !are_alike || !accesses.iter().all(|(_, of_buffer)| are_disjoint(of_buffer, &found, &inside)) {
        return None;
    }
    let holds = |comparison: &Comparison| {
        (part.decides)(comparison) && digits(comparison, part.full).is_some_and(|own| found.contains(&own))
    };
    let always = decide(stmt, part.reach, &mut |comparison| holds(comparison).then(|| Expr::bool(true)));
    let (mut rest, mut known, mut loops) = (part.count.clone(), Vec::new(), Vec::new());
    for weight in weights {
        let (var, id) = (program.add_variable("tail", VariableKind::Loop), program.fresh_loop());
        let extent = rest.floor_div(weight);
        known.push(Index::var(var));
        let body = copy(program, &with_digits(&always, &found, &known));
        let annotations = Annotations::new();
        let kind = LoopKind::Serial;
        loops.push(Stmt::For(Arc::new(For { id, var, extent: extent.clone(), kind, annotations, body })));
        // Smaller digits come into play behind what the greater ones number completely.
        known.pop();
        known.push(extent);
        rest = rest.modulo(weight);
    }
    Some(loops)
}

/// The statement with given values of the first digits, without their loops.
fn with_digits(stmt: &Stmt, found: &[Digits], known: &[Index]) -> Stmt {
    let values: FxHashMap<VarId, &Index> =
        found.iter().flat_map(|digits| digits.iter().map(|(var, _)| *var).zip(known)).collect();
    let mut stmt = stmt.clone();
    remove_loops(&mut stmt, &values);
    substitute_stmt(&mut stmt, &|var| values.get(&var).map(|value| Index::clone(value)));
    stmt
}

fn remove_loops(stmt: &mut Stmt, values: &FxHashMap<VarId, &Index>) {
    while let Stmt::For(node) = stmt
        && values.contains_key(&node.var)
    {
        *stmt = node.body.clone();
    }
    stmt.children_mut().into_iter().for_each(|child| remove_loops(child, values));
}

fn stored(stmt: &Stmt) -> Vec<BufferId> {
    let mut found = Vec::new();
    for_each_stmt(stmt, &mut |node| {
        if let Stmt::Store(store) = node {
            found.push(store.buffer);
        }
    });
    found
}

fn loop_vars(stmt: &Stmt) -> Vec<VarId> {
    let mut found = Vec::new();
    for_each_stmt(stmt, &mut |node| {
        if let Stmt::For(node) = node {
            found.push(node.var);
        }
    });
    found
}

/// An access, and which of the digits found are those of its iteration.
type NumberedAccess = (Indices, usize);

struct Search<'a> {
    part: &'a Part<'a>,
    found: Vec<Digits>,
    stored: Vec<BufferId>,
    /// The accesses to buffers that are stored to.
    accesses: Vec<(BufferId, Vec<NumberedAccess>)>,
}

impl Search<'_> {
    /// Collects the accesses of a statement, in the iteration of the digits of a number. `None` when some of them are in no iteration,
    /// or in several.
    fn visit(&mut self, stmt: &Stmt, below: &mut Below, number: Option<usize>) -> Option<()> {
        match stmt {
            Stmt::Seq(_) | Stmt::Alloc(_) => {
                stmt.children().into_iter().try_for_each(|child| self.visit(child, below, number))
            }
            Stmt::For(node) => {
                below.enter(node);
                let visited = self.visit(&node.body, below, number);
                below.leave();
                visited
            }
            Stmt::If(node) => {
                let asks = below.comparison(&node.condition).filter(|found| found.reach == *self.part.reach);
                let Some(comparison) = asks else {
                    if self.stored.iter().any(|buffer| loads_from(&node.condition, *buffer)) {
                        return None;
                    }
                    return stmt
                        .children()
                        .into_iter()
                        .try_for_each(|child| self.visit(child, below, number));
                };
                if number.is_some() || node.otherwise.is_some() || !(self.part.decides)(&comparison) {
                    return None;
                }
                let digits = digits(&comparison, self.part.full)?;
                let known = self.found.iter().position(|other| *other == digits);
                let number = known.unwrap_or_else(|| {
                    self.found.push(digits);
                    self.found.len() - 1
                });
                self.visit(&node.then, below, Some(number))
            }
            Stmt::Store(store) => {
                let number = number?;
                self.record(store.buffer, &store.indices, number);
                loads(stmt).into_iter().for_each(|load| self.record(load.buffer, load.indices, number));
                Some(())
            }
            // The accesses of an intrinsic are not spelled out in indices.
            Stmt::Intrinsic(_) | Stmt::Block(_) | Stmt::Barrier | Stmt::Copies(_) | Stmt::Shuffle(_) => None,
        }
    }

    fn record(&mut self, buffer: BufferId, indices: &Indices, number: usize) {
        if !self.stored.contains(&buffer) {
            return;
        }
        let access = (indices.clone(), number);
        match self.accesses.iter_mut().find(|(other, _)| *other == buffer) {
            Some((_, of_buffer)) => of_buffer.push(access),
            None => self.accesses.push((buffer, vec![access])),
        }
    }
}

/// The digits that a comparison mentions, when they number the iterations of a full tile from 0.
fn digits(comparison: &Comparison, full: i64) -> Option<Digits> {
    let mut digits = Digits::new();
    for term in comparison.inner.terms() {
        match term.digit.base {
            Base::Var(var) if term.digit.is_whole() => digits.push((var, term.coefficient)),
            _ => return None,
        }
    }
    digits.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
    let mut smallest_first = digits.iter().rev();
    let numbered = smallest_first.try_fold(1, |length: i64, (var, weight)| {
        let extent = comparison.below.constant_extent(*var)?;
        (*weight == length).then(|| length.checked_mul(extent)).flatten()
    });
    (numbered == Some(full)).then_some(digits)
}

/// Whether accesses in different iterations are to different elements.
fn are_disjoint(accesses: &[NumberedAccess], found: &[Digits], inside: &[VarId]) -> bool {
    let dimensions = accesses.first().map_or(0, |(indices, _)| indices.len());
    (0..dimensions).any(|dimension| {
        let places: Option<Vec<_>> = accesses
            .iter()
            .map(|(indices, number)| place_of_number(&indices[dimension], &found[*number], inside))
            .collect();
        places.is_some_and(|places| places.windows(2).all(|pair| pair[0] == pair[1]))
    })
}

/// The factor of the iteration's number in an index, and what is added, which stays the same in the tile.
fn place_of_number(index: &Index, digits: &Digits, inside: &[VarId]) -> Option<(i64, Index)> {
    let (last, _) = digits.last()?;
    let factor = index.linear_coefficient(*last).filter(|factor| *factor != 0)?;
    let mut rest = index.clone();
    for (var, weight) in digits {
        rest = rest.add_scaled(&Index::var(*var), -factor.checked_mul(*weight)?);
    }
    (!inside.iter().any(|var| rest.mentions(*var))).then_some((factor, rest))
}

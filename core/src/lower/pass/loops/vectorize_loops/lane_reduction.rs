//! Vectorized reduction loops become trees: halves of vectors are combined until one value is left.
//!
//! ```text
//! vectorized for j in 0..8 { c[i] = c[i] + a[i, j] }
//! alloc t { t[lane<4>] = a[i, lane<4>] + a[i, lane<4> + 4]
//!   alloc u { u[lane<2>] = t[lane<2>] + t[lane<2> + 2]
//!     c[i] = c[i] + (u[0] + u[1]) } }
//! ```
//!
//! Each level has an intermediate of its own, which a backend can hold in registers: stores begin at multiples of a vector. Where a row ends inside a
//! vector, the lanes beyond its end combine a value with the neutral element.
//!
//! ```text
//! vectorized for j in 0..77 { c[i] = c[i] + a[i, j] }
//! alloc t {
//!   t[lane<16>] = a[i, lane<16>] + select(lane<16> < 13, a[i, lane<16> + 64], 0)
//!   t[lane<48> + 16] = a[i, lane<48> + 16] … }
//! ```
//!
//! A schedule with such a loop requests another order of combination, as one with `rfactor` does.

use std::sync::Arc;

use crate::analysis::block::{Reducer, loads_in, reduction_of};
use crate::expr::{BinaryOp, Expr, Indices};
use crate::ids::{BufferId, VarId};
use crate::index::Index;
use crate::lower::pass::loops::vectorize_loops::{is_contiguous, value_has_vector_form};
use crate::program::{Buffer, Program, Scope};
use crate::stmt::{Alloc, For, Stmt, Store, StoreKind};
use crate::visit::{lanes, substitute_expr};

/// The tree of a loop around one update of an element that the loop does not move; `None` for any other loop, and
/// when no operand lies along the lanes.
pub(super) fn fold(node: &For, count: i64, program: &mut Program) -> Option<Stmt> {
    let Stmt::Store(store) = &node.body else { return None };
    let (reducer, value) = reduction_of(store).map(|found| (found.reducer, found.value.clone()))?;
    let is_one_element = !store.indices.iter().any(|index| index.mentions(node.var) || index.lanes() > 1);
    let mut operands = Vec::new();
    loads_in(&value, &mut operands);
    let lies_along = operands.iter().any(|load| is_contiguous(load.buffer, load.indices, node.var, program));
    if count < 2
        || store.is_atomic()
        || !is_one_element
        || !lies_along
        || lanes(&value) > 1
        || !value_has_vector_form(&value, node.var, program)
    {
        return None;
    }
    Some(Tree { reducer, value, var: node.var }.stmt(store, count, program))
}

/// The most bytes of a vector.
const VECTOR_BYTES: i64 = 64;

/// The largest power of two below a number of at least 2.
fn power_below(count: i64) -> i64 {
    1 << (count - 1).ilog2()
}

struct Tree {
    reducer: Reducer,
    /// The value that the reduction combines, by `var`.
    value: Expr,
    var: VarId,
}

impl Tree {
    fn stmt(&self, store: &Store, count: i64, program: &mut Program) -> Stmt {
        let (mut stmts, mut partials) = (Vec::new(), Vec::new());
        let mut width = power_below(count);
        let mut pieces = self.first_level(width, count - width);
        while width > 1 {
            let partial = self.intermediate(width, program);
            partials.push(partial);
            stmts.extend(pieces.into_iter().map(|piece| piece.kept_in(partial)));
            width /= 2;
            let halves = self.combined(self.kept(partial, 0, width), self.kept(partial, width, width));
            pieces = vec![Piece { start: 0, count: width, value: halves }];
        }
        let halves = pieces.swap_remove(0).value;
        let element = Expr::load(halves.dtype(), store.buffer, store.indices.iter().cloned());
        let value = self.combined(element, halves);
        stmts.push(Stmt::Store(Arc::new(Store { value, ..store.clone() })));
        let allocated = |body, buffer| Stmt::Alloc(Arc::new(Alloc { buffer, body }));
        partials.into_iter().rev().fold(Stmt::seq(stmts), allocated)
    }

    /// The lanes of the first level, `width` of them, of which the first `paired` combine two values each.
    fn first_level(&self, width: i64, paired: i64) -> Vec<Piece> {
        let vector = (VECTOR_BYTES / self.value.dtype().bytes() as i64).min(width);
        let whole = paired / vector * vector;
        let end = if whole < paired { whole + vector } else { whole };
        let mut pieces = Vec::new();
        if whole > 0 {
            let value = self.combined(self.values(0, whole), self.values(width, whole));
            pieces.push(Piece { start: 0, count: whole, value });
        }
        if whole < end {
            let [lane, bound] = [places(whole, end - whole), Index::constant(paired)].map(Expr::index);
            let is_paired = Expr::binary(BinaryOp::Lt, lane, bound);
            let neutral = self.reducer.neutral(self.value.dtype());
            let second = Expr::select(is_paired, self.values(width + whole, end - whole), neutral);
            let value = self.combined(self.values(whole, end - whole), second);
            pieces.push(Piece { start: whole, count: end - whole, value });
        }
        if end < width {
            pieces.push(Piece { start: end, count: width - end, value: self.values(end, width - end) });
        }
        pieces
    }

    /// An intermediate of `elements` elements.
    fn intermediate(&self, elements: i64, program: &mut Program) -> BufferId {
        let (dtype, shape) = (self.value.dtype(), vec![Index::constant(elements)]);
        program.add_buffer(Buffer { name: "partial".into(), dtype, shape, scope: Scope::Local })
    }

    fn combined(&self, left: Expr, right: Expr) -> Expr {
        Expr::binary(self.reducer.op(), left, right)
    }

    /// The values from an offset on, one in each lane.
    fn values(&self, start: i64, count: i64) -> Expr {
        let place = places(start, count);
        substitute_expr(&self.value, &|var| (var == self.var).then(|| place.clone()))
    }

    fn kept(&self, partial: BufferId, start: i64, count: i64) -> Expr {
        Expr::load(self.value.dtype(), partial, [places(start, count)])
    }
}

/// Neighbouring lanes of a level.
struct Piece {
    start: i64,
    count: i64,
    value: Expr,
}

impl Piece {
    fn kept_in(self, partial: BufferId) -> Stmt {
        let indices: Indices = vec![places(self.start, self.count)];
        Stmt::Store(Arc::new(Store { buffer: partial, indices, value: self.value, kind: StoreKind::Plain }))
    }
}

fn places(start: i64, count: i64) -> Index {
    &Index::lane(count as u32) + &Index::constant(start)
}

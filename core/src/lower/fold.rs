//! Vectorized reduction loops become trees: halves of vectors are combined until one value is left.
//!
//! ```text
//! vectorized for j in 0..8 { c[i] = c[i] + a[i, j] }
//! alloc t { t[lane<4>] = a[i, lane<4>] + a[i, lane<4> + 4]
//!           t[lane<2>] = t[lane<2>] + t[lane<2> + 2]
//!           c[i] = c[i] + (t[0] + t[1]) }
//! ```
//!
//! The schedule asks for another order of combination with such a loop, as it does with `rfactor`.

use std::sync::Arc;

use crate::analysis::block::{loads_in, reduction_of};
use crate::expr::{BinaryOp, Expr, Indices};
use crate::ids::{BufferId, VarId};
use crate::index::Index;
use crate::lower::vectorize::{is_contiguous, value_has_vector_form};
use crate::program::{Buffer, Program, Scope};
use crate::stmt::{Alloc, For, Stmt, Store};
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
        || !is_one_element
        || !lies_along
        || lanes(&value) > 1
        || !value_has_vector_form(&value, node.var)
    {
        return None;
    }
    let shape = vec![Index::constant(power_below(count))];
    let dtype = value.dtype();
    let partial = program.add_buffer(Buffer { name: "partial".into(), dtype, shape, scope: Scope::Local });
    let tree = Tree { op: reducer.op(), partial, value, var: node.var };
    Some(Stmt::Alloc(Arc::new(Alloc { buffer: partial, body: tree.body(store, count) })))
}

/// The largest power of two below a number of at least 2.
fn power_below(count: i64) -> i64 {
    1 << (count - 1).ilog2()
}

struct Tree {
    op: BinaryOp,
    /// What is combined so far, from element 0 on.
    partial: BufferId,
    /// What is combined, by `var`.
    value: Expr,
    var: VarId,
}

impl Tree {
    fn body(&self, store: &Store, count: i64) -> Stmt {
        let mut stmts = Vec::new();
        let mut width = power_below(count);
        let rest = count - width;
        let mut first = self.combined(self.values(0, rest), self.values(width, rest));
        if width > 1 {
            stmts.push(self.keep(0, rest, first));
            if rest < width {
                stmts.push(self.keep(rest, width - rest, self.values(rest, width - rest)));
            }
            while width > 2 {
                width /= 2;
                let halves = self.combined(self.kept(0, width), self.kept(width, width));
                stmts.push(self.keep(0, width, halves));
            }
            first = self.combined(self.kept(0, 1), self.kept(1, 1));
        }
        let element = Expr::load(first.dtype(), store.buffer, store.indices.iter().cloned());
        let value = self.combined(element, first);
        stmts.push(Stmt::Store(Arc::new(Store { value, ..store.clone() })));
        Stmt::seq(stmts)
    }

    fn combined(&self, left: Expr, right: Expr) -> Expr {
        Expr::binary(self.op, left, right)
    }

    /// The values from a place on, one in each lane.
    fn values(&self, start: i64, count: i64) -> Expr {
        let place = places(start, count);
        substitute_expr(&self.value, &|var| (var == self.var).then(|| place.clone()))
    }

    fn kept(&self, start: i64, count: i64) -> Expr {
        Expr::load(self.value.dtype(), self.partial, [places(start, count)])
    }

    fn keep(&self, start: i64, count: i64, value: Expr) -> Stmt {
        let indices: Indices = vec![places(start, count)];
        Stmt::Store(Arc::new(Store { buffer: self.partial, indices, value }))
    }
}

fn places(start: i64, count: i64) -> Index {
    &Index::lane(count as u32) + &Index::constant(start)
}

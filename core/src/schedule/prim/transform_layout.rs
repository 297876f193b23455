//! `transform_layout`

use std::sync::Arc;

use crate::analysis::block::single_store;
use crate::analysis::scope::writes_parameter;
use crate::expr::{Expr, Indices};
use crate::ids::BufferId;
use crate::index::Index;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::edit::{replace_loads, require_block};
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, Schedule, ScheduleError};
use crate::stmt::Stmt;

/// Stores the result of a block with its dimensions in another order: dimension `order[n]` becomes the `n`-th. Only
/// where elements lie changes, so that another loop can run along memory.
///
/// ```text
/// before
/// kernel copy(in a: f32[4, 6], out c: f32[6, 4]) {
///   buffer b: f32[4, 6] local
///   for i in 0..4 {
///     for j in 0..6 {
///       block b(vi: spatial 4 = i, vj: spatial 6 = j) {
///         b[vi, vj] = a[vi, vj] * 2.0
///       }
///     }
///   }
///   for j in 0..6 {
///     for i in 0..4 {
///       block c(vj: spatial 6 = j, vi: spatial 4 = i) {
///         c[vj, vi] = b[vi, vj]
///       }
///     }
///   }
/// }
/// apply
/// %0 = get_block "b"
/// transform_layout %0, [1, 0]
/// after
/// kernel copy(in a: f32[4, 6], out c: f32[6, 4]) {
///   buffer b: f32[6, 4] local
///   for i in 0..4 {
///     for j in 0..6 {
///       block b(vi: spatial 4 = i, vj: spatial 6 = j) {
///         b[vj, vi] = a[vi, vj] * 2.0
///       }
///     }
///   }
///   for j_1 in 0..6 {
///     for i_1 in 0..4 {
///       block c(vj_1: spatial 6 = j_1, vi_1: spatial 4 = i_1) {
///         c[vj_1, vi_1] = b[vj_1, vi_1]
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TransformLayout {
    /// The block, which writes an intermediate.
    pub block: BlockRv,
    /// The old dimensions, in their new order.
    pub order: Vec<i64>,
}

impl Primitive for TransformLayout {
    const NAME: &'static str = "transform_layout";

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))?;
        visitor.visit(Argument::Numbers(&mut self.order))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.block(self.block)?;
        let block = require_block(context.program, id)?;
        let buffer = single_store(block).ok_or(ScheduleError::NotComplete(id))?.buffer;
        if writes_parameter(context.program, block) {
            return Err(ScheduleError::OutputBlock(id));
        }
        let order = permutation(&self.order, context.program.buffer(buffer).shape.len())
            .ok_or(ScheduleError::BadDecision("the order names each dimension once"))?;
        let shape = context.program.buffer(buffer).shape.clone();
        let permuted = order.iter().map(|dimension| shape[*dimension].clone()).collect();
        context.program.buffer_mut(buffer).shape = permuted;
        let dtype = context.program.buffer(buffer).dtype;
        let load = |indices: &Indices| Expr::load(dtype, buffer, permute(indices, &order));
        replace_loads(&mut context.program.body, buffer, &load);
        permute_stores(&mut context.program.body, buffer, &order);
        Ok(Outputs::new())
    }
}

/// The order as positions, if it is a permutation of `rank` dimensions.
fn permutation(order: &[i64], rank: usize) -> Option<Vec<usize>> {
    let positions: Vec<usize> = order.iter().map(|place| usize::try_from(*place).ok()).collect::<Option<_>>()?;
    let is_whole = positions.len() == rank && (0..rank).all(|place| positions.contains(&place));
    is_whole.then_some(positions)
}

fn permute<'a>(indices: &'a Indices, order: &'a [usize]) -> impl Iterator<Item = Index> + 'a {
    order.iter().map(|dimension| indices[*dimension].clone())
}

fn permute_stores(stmt: &mut Stmt, buffer: BufferId, order: &[usize]) {
    if let Stmt::Store(store) = stmt {
        if store.buffer == buffer {
            let store = Arc::make_mut(store);
            store.indices = permute(&store.indices, order).collect();
        }
        return;
    }
    stmt.children_mut().into_iter().for_each(|child| permute_stores(child, buffer, order));
}

impl Schedule {
    /// Stores the result of a block with its dimensions in another order. See [`TransformLayout`].
    ///
    /// # Errors
    /// When the block writes a parameter, or the order does not name each dimension once.
    pub fn transform_layout(&mut self, block: BlockRv, order: &[i64]) -> Result<(), ScheduleError> {
        self.push(TransformLayout { block, order: order.to_vec() }, None).map(drop)
    }
}

//! `reorder_block_iter_var`

use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::edit::edit_block;
use crate::schedule::find::require_block;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, Schedule, ScheduleError};

/// Puts a block's iterators into another order. The computation stays; what changes is the order in which the
/// block presents itself to rules, maps and intrinsics.
///
/// ```text
/// before
/// kernel grid(in a: f32[4, 6], out b: f32[4, 6]) {
///   for i in 0..4 {
///     for j in 0..6 {
///       block b(vi: spatial 4 = i, vj: spatial 6 = j) {
///         b[vi, vj] = a[vi, vj]
///       }
///     }
///   }
/// }
/// apply
/// %0 = get_block "b"
/// reorder_block_iter_var %0, [1, 0]
/// after
/// kernel grid(in a: f32[4, 6], out b: f32[4, 6]) {
///   for i in 0..4 {
///     for j in 0..6 {
///       block b(vj: spatial 6 = j, vi: spatial 4 = i) {
///         b[vi, vj] = a[vi, vj]
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReorderBlockIterVar {
    /// The block.
    pub block: BlockRv,
    /// The old positions, from 0, in their new order: each exactly once.
    pub order: Vec<i64>,
}

impl Primitive for ReorderBlockIterVar {
    const NAME: &'static str = "reorder_block_iter_var";
    const KEEPS_ORDER: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))?;
        visitor.visit(Argument::Numbers(&mut self.order))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.block(self.block)?;
        let count = require_block(context.program, id)?.iters.len() as i64;
        let mut sorted = self.order.clone();
        sorted.sort_unstable();
        if !sorted.into_iter().eq(0..count) {
            return Err(ScheduleError::BadOrder(id));
        }
        edit_block(&mut context.program.body, id, &mut |block| {
            block.iters = self.order.iter().map(|position| block.iters[*position as usize].clone()).collect();
        });
        Ok(Outputs::new())
    }
}

impl Schedule {
    /// Puts a block's iterators into another order. See [`ReorderBlockIterVar`].
    ///
    /// # Errors
    /// When the block is gone, or the order does not name each iterator once.
    pub fn reorder_block_iter_var(&mut self, block: BlockRv, order: &[i64]) -> Result<(), ScheduleError> {
        self.push(ReorderBlockIterVar { block, order: order.to_vec() }, None).map(drop)
    }
}

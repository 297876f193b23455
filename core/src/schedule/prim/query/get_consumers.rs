//! `get_consumers`

use crate::analysis::scope::consumers;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::find::require_block;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, Schedule, ScheduleError, Value};

/// Finds the blocks that read what a block writes, in program order.
///
/// ```text
/// before
/// kernel chain(in a: f32[8], out c: f32[8]) {
///   buffer b: f32[8] global
///   for i in 0..8 {
///     block b(v: spatial 8 = i) {
///       b[v] = a[v] + 1.0
///     }
///   }
///   for i in 0..8 {
///     block c(v: spatial 8 = i) {
///       c[v] = b[v] * 2.0
///     }
///   }
/// }
/// apply
/// %0 = get_block "b"
/// %1 = get_consumers %0
/// after
/// kernel chain(in a: f32[8], out c: f32[8]) {
///   buffer b: f32[8] global
///   for i in 0..8 {
///     block b(v: spatial 8 = i) {
///       b[v] = a[v] + 1.0
///     }
///   }
///   for i_1 in 0..8 {
///     block c(v_1: spatial 8 = i_1) {
///       c[v_1] = b[v_1] * 2.0
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GetConsumers {
    /// The block.
    pub block: BlockRv,
}

impl Primitive for GetConsumers {
    const NAME: &'static str = "get_consumers";
    const PURE: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let block = require_block(context.program, context.values.block(self.block)?)?;
        let found = consumers(context.program, block);
        Ok(found.into_iter().map(|block| Value::Block(block.id)).collect())
    }
}

impl Schedule {
    /// Finds the blocks that read what a block writes, in program order. See [`GetConsumers`].
    ///
    /// # Errors
    /// When the block is gone.
    pub fn get_consumers(&mut self, block: BlockRv) -> Result<Vec<BlockRv>, ScheduleError> {
        Ok(self.push_many(GetConsumers { block })?.map(BlockRv).collect())
    }
}

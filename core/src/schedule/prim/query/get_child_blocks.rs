//! `get_child_blocks`

use crate::analysis::scope::blocks;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::find::require_loop;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, LoopRv, Schedule, ScheduleError, Value};

/// Finds the blocks inside a loop, in program order.
///
/// ```text
/// before
/// kernel copy(in a: f32[12], out b: f32[12]) {
///   for i in 0..12 {
///     block b(v: spatial 12 = i) {
///       b[v] = a[v]
///     }
///   }
/// }
/// apply
/// %0 = get_block "b"
/// %1 = get_loops %0
/// %2 = get_child_blocks %1
/// after
/// kernel copy(in a: f32[12], out b: f32[12]) {
///   for i in 0..12 {
///     block b(v: spatial 12 = i) {
///       b[v] = a[v]
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GetChildBlocks {
    /// The loop.
    pub target: LoopRv,
}

impl Primitive for GetChildBlocks {
    const NAME: &'static str = "get_child_blocks";
    const PURE: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Loop(&mut self.target))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let node = require_loop(context.program, context.values.target_loop(self.target)?)?;
        Ok(blocks(&node.body).into_iter().map(|block| Value::Block(block.id)).collect())
    }
}

impl Schedule {
    /// Finds the blocks inside a loop, in program order. See [`GetChildBlocks`].
    ///
    /// # Errors
    /// When the loop is gone.
    pub fn get_child_blocks(&mut self, target: LoopRv) -> Result<Vec<BlockRv>, ScheduleError> {
        Ok(self.push_many(GetChildBlocks { target })?.map(BlockRv).collect())
    }
}

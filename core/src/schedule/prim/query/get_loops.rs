//! `get_loops`

use crate::analysis::scope::loops_around;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, LoopRv, Schedule, ScheduleError, Value};

/// Finds the loops around a block, outermost first.
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
/// %1, %2 = get_loops %0
/// after
/// kernel grid(in a: f32[4, 6], out b: f32[4, 6]) {
///   for i in 0..4 {
///     for j in 0..6 {
///       block b(vi: spatial 4 = i, vj: spatial 6 = j) {
///         b[vi, vj] = a[vi, vj]
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GetLoops {
    /// The block.
    pub block: BlockRv,
}

impl Primitive for GetLoops {
    const NAME: &'static str = "get_loops";
    const PURE: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let block = context.values.block(self.block)?;
        let loops = loops_around(&context.program.body, block).ok_or(ScheduleError::MissingBlock(block))?;
        Ok(loops.into_iter().map(|node| Value::Loop(node.id)).collect())
    }
}

impl Schedule {
    /// The loops around a block, outermost first. See [`GetLoops`].
    ///
    /// # Errors
    /// When the block is gone.
    pub fn get_loops(&mut self, block: BlockRv) -> Result<Vec<LoopRv>, ScheduleError> {
        Ok(self.push_many(GetLoops { block })?.map(LoopRv).collect())
    }
}

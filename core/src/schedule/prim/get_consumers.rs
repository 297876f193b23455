//! `get_consumers`

use crate::analysis::scope::consumers;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::edit::require_block;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, Schedule, ScheduleError, Value};

/// Finds the blocks that read what a block writes, in program order.
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

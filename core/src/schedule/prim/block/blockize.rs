//! `blockize`

use std::sync::Arc;

use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::edit::{build_tile, check_tile, edit_loop};
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, LoopRv, Schedule, ScheduleError, Value};
use crate::stmt::Stmt;

/// Makes the block inside a loop compute a whole tile: the loop and those inside it move into the block's
/// body, and its iterators count tiles. A reduction that runs wholly inside keeps an iterator of extent 1 as the
/// place of its initial value.
///
/// ```text
/// before
/// kernel sums(in a: f32[8, 6], out s: f32[8]) {
///   for i in 0..8 {
///     for k in 0..6 {
///       block s(vi: spatial 8 = i, vk: reduce 6 = k) {
///         init {
///           s[vi] = 0.0
///         }
///         s[vi] = s[vi] + a[vi, vk]
///       }
///     }
///   }
/// }
/// apply
/// %0 = get_block "s"
/// %1, %2 = get_loops %0
/// %3, %4 = split %1, [2, 4]
/// %5 = blockize %4
/// after
/// kernel sums(in a: f32[8, 6], out s: f32[8]) {
///   for i_0 in 0..2 {
///     block s(vio: spatial 2 = i_0, vko: reduce 1 = 0) {
///       init {
///         for vi in 0..4 {
///           s[vio*4 + vi] = 0.0
///         }
///       }
///       for i_1 in 0..4 {
///         for k in 0..6 {
///           s[vio*4 + i_1] = s[vio*4 + i_1] + a[vio*4 + i_1, vko*6 + k]
///         }
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Blockize {
    /// The outermost loop that moves into the block.
    pub target: LoopRv,
}

impl Primitive for Blockize {
    const NAME: &'static str = "blockize";
    const KEEPS_ORDER: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Loop(&mut self.target))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.target_loop(self.target)?;
        let tile = check_tile(context.program, id)?;
        let made = build_tile(context.program, &tile);
        let output = Value::Block(made.id);
        let made = Stmt::Block(Arc::new(made));
        edit_loop(&mut context.program.body, id, &mut |stmt| *stmt = made.clone());
        Ok(Outputs::from_slice(&[output]))
    }
}

impl Schedule {
    /// Makes the block inside a loop compute a whole tile, and gives the block. See [`Blockize`].
    ///
    /// # Errors
    /// When the loop does not hold one block alone, or its loops do not enumerate whole tiles of it.
    pub fn blockize(&mut self, target: LoopRv) -> Result<BlockRv, ScheduleError> {
        self.push_one(Blockize { target }).map(BlockRv)
    }
}

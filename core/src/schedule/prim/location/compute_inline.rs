//! `compute_inline`

use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::edit::inline_block;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, Schedule, ScheduleError};

/// Puts a block's computation into each of its consumers, in place of the loads of its result.
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
/// compute_inline %0
/// after
/// kernel chain(in a: f32[8], out c: f32[8]) {
///   for i in 0..8 {
///     block c(v: spatial 8 = i) {
///       c[v] = (a[v] + 1.0) * 2.0
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComputeInline {
    /// The block: spatial, one store to `buffer[iterators…]`, not a parameter.
    pub block: BlockRv,
}

impl Primitive for ComputeInline {
    const NAME: &'static str = "compute_inline";
    const KEEPS_ORDER: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        inline_block(context.program, context.values.block(self.block)?)?;
        Ok(Outputs::new())
    }
}

impl Schedule {
    /// Puts a block's computation into each of its consumers. See [`ComputeInline`].
    ///
    /// # Errors
    /// When the block is no plain element-wise computation of an intermediate.
    pub fn compute_inline(&mut self, block: BlockRv) -> Result<(), ScheduleError> {
        self.push(ComputeInline { block }, None).map(drop)
    }
}

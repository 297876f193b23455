//! `write_at`

use crate::program::Scope;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::prim::{CacheWrite, Context, Outputs, Primitive, ReverseComputeAt, in_steps};
use crate::schedule::{BlockRv, LoopRv, Schedule, ScheduleError};
use crate::stmt::Symbol;

/// Lets a block write a buffer of its own, which is copied to the original in each iteration of a loop:
/// `cache_write` and `reverse_compute_at` in one step, which is refused as a whole.
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
/// %2, %3 = split %1, [3, 4]
/// %4 = write_at %2, %0, "local"
/// after
/// kernel copy(in a: f32[12], out b: f32[12]) {
///   buffer b_local: f32[12] local
///   for i_0 in 0..3 {
///     for i_1 in 0..4 {
///       block b(v: spatial 12 = i_0*4 + i_1) {
///         b_local[v] = a[v]
///       }
///     }
///     for v0 in 0..4 {
///       block b_copy(v0_1: spatial 12 = i_0*4 + v0) {
///         b[v0_1] = b_local[v0_1]
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct WriteAt {
    /// The loop in which the copy is made.
    pub target: LoopRv,
    /// The block that writes.
    pub block: BlockRv,
    /// Where its new buffer lives: `global` or `local`.
    pub scope: Symbol,
}

impl Default for WriteAt {
    fn default() -> Self {
        let scope = Scope::Local.text().into();
        WriteAt { target: LoopRv::default(), block: BlockRv::default(), scope }
    }
}

impl Primitive for WriteAt {
    const NAME: &'static str = "write_at";

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Loop(&mut self.target))?;
        visitor.visit(Argument::Block(&mut self.block))?;
        visitor.visit(Argument::Text(&mut self.scope))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let cache = CacheWrite { block: self.block, scope: self.scope.clone() };
        in_steps(context, &cache, |block| ReverseComputeAt { block, target: self.target })
    }
}

impl Schedule {
    /// Lets a block write a buffer that is copied in a loop, and gives the block that copies. See [`WriteAt`].
    ///
    /// # Errors
    /// Those of [`Schedule::cache_write`] and [`Schedule::reverse_compute_at`].
    pub fn write_at(
        &mut self,
        target: LoopRv,
        block: BlockRv,
        scope: Scope,
    ) -> Result<BlockRv, ScheduleError> {
        self.push_one(WriteAt { target, block, scope: scope.text().into() }).map(BlockRv)
    }
}

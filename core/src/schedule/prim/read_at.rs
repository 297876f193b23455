//! `read_at`

use crate::program::Scope;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::prim::{CacheRead, ComputeAt, Context, Outputs, Primitive, in_steps};
use crate::schedule::{BlockRv, LoopRv, Schedule, ScheduleError};
use crate::stmt::Symbol;

/// Lets a block read a copy of what it reads of a buffer inside a loop, made there in each iteration: `cache_read`
/// and `compute_at` in one step, which is refused as a whole.
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
/// %4 = read_at %2, %0, 0, "local"
/// after
/// kernel copy(in a: f32[12], out b: f32[12]) {
///   buffer a_local: f32[12] local
///   for i_0 in 0..3 {
///     for v0 in 0..4 {
///       block a_local(v0_1: spatial 12 = i_0*4 + v0) {
///         a_local[v0_1] = a[v0_1]
///       }
///     }
///     for i_1 in 0..4 {
///       block b(v: spatial 12 = i_0*4 + i_1) {
///         b[v] = a_local[v]
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ReadAt {
    /// The loop in which the copy is made.
    pub target: LoopRv,
    /// The block that reads.
    pub block: BlockRv,
    /// Which of the buffers it reads, in order of appearance, from 0.
    pub read: i64,
    /// Where the copy lives: `global` or `local`.
    pub scope: Symbol,
}

impl Default for ReadAt {
    fn default() -> Self {
        let scope = Scope::Local.text().into();
        ReadAt { target: LoopRv::default(), block: BlockRv::default(), read: 0, scope }
    }
}

impl Primitive for ReadAt {
    const NAME: &'static str = "read_at";

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Loop(&mut self.target))?;
        visitor.visit(Argument::Block(&mut self.block))?;
        visitor.visit(Argument::Number(&mut self.read))?;
        visitor.visit(Argument::Text(&mut self.scope))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let cache = CacheRead { block: self.block, read: self.read, scope: self.scope.clone() };
        in_steps(context, &cache, |block| ComputeAt { block, target: self.target })
    }
}

impl Schedule {
    /// Lets a block read a copy that is made in a loop, and gives the block that makes the copy. See [`ReadAt`].
    ///
    /// # Errors
    /// Those of [`Schedule::cache_read`] and [`Schedule::compute_at`].
    pub fn read_at(
        &mut self,
        target: LoopRv,
        block: BlockRv,
        read: i64,
        scope: Scope,
    ) -> Result<BlockRv, ScheduleError> {
        self.push_one(ReadAt { target, block, read, scope: scope.text().into() }).map(BlockRv)
    }
}

//! `reindex_cache_read`

use crate::index::map::IndexMap;
use crate::program::Scope;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::check::buffer::scope_named;
use crate::schedule::edit::reindex_read;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, Schedule, ScheduleError, Value};
use crate::stmt::Symbol;

/// Lets a block read a copy of the elements that it reads of a buffer, laid out by its own iterators: the
/// map gives the position of the element of each point. An element that several points read may be copied several
/// times. This is how operands are packed for a tile.
///
/// ```text
/// before
/// kernel windows(in a: f32[10], in w: f32[3], out b: f32[8]) {
///   for i in 0..8 {
///     for r in 0..3 {
///       block b(vi: spatial 8 = i, vr: reduce 3 = r) {
///         init {
///           b[vi] = 0.0
///         }
///         b[vi] = b[vi] + a[vi + vr] * w[vr]
///       }
///     }
///   }
/// }
/// apply
/// %0 = get_block "b"
/// %1 = reindex_cache_read %0, 0, "global", (i, r) -> (i/4, r, i%4)
/// after
/// kernel windows(in a: f32[10], in w: f32[3], out b: f32[8]) {
///   buffer a_global: f32[2, 3, 4] global
///   for a0 in 0..8 {
///     for a1 in 0..3 {
///       block a_global(v0: spatial 8 = a0, v1: spatial 3 = a1) {
///         a_global[v0/4, v1, v0%4] = a[v0 + v1]
///       }
///     }
///   }
///   for i in 0..8 {
///     for r in 0..3 {
///       block b(vi: spatial 8 = i, vr: reduce 3 = r) {
///         init {
///           b[vi] = 0.0
///         }
///         b[vi] = b[vi] + a_global[vi/4, vr, vi%4] * w[vr]
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ReindexCacheRead {
    /// The block that reads.
    pub block: BlockRv,
    /// Which of the buffers it reads, in order of appearance, from 0.
    pub read: i64,
    /// Where the copy lives: `global`, `local` or `shared`.
    pub scope: Symbol,
    /// From the block's iterators to indices of the copy.
    pub map: IndexMap,
}

impl Default for ReindexCacheRead {
    fn default() -> Self {
        let scope = Scope::Global.text().into();
        ReindexCacheRead { block: BlockRv::default(), read: 0, scope, map: IndexMap::default() }
    }
}

impl Primitive for ReindexCacheRead {
    const NAME: &'static str = "reindex_cache_read";

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))?;
        visitor.visit(Argument::Number(&mut self.read))?;
        visitor.visit(Argument::Text(&mut self.scope))?;
        visitor.visit(Argument::Map(&mut self.map))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.block(self.block)?;
        let scope = scope_named(&self.scope)?;
        let made = reindex_read(context.program, id, self.read, scope, &|_| self.map.clone())?;
        Ok(Outputs::from_slice(&[Value::Block(made)]))
    }
}

impl Schedule {
    /// Lets a block read a copy laid out by its own iterators, and gives the block that makes the copy. See
    /// [`ReindexCacheRead`].
    ///
    /// # Errors
    /// When the block reads several elements at a point, or the map loses some of them.
    pub fn reindex_cache_read(
        &mut self,
        block: BlockRv,
        read: i64,
        scope: Scope,
        map: IndexMap,
    ) -> Result<BlockRv, ScheduleError> {
        self.push_one(ReindexCacheRead { block, read, scope: scope.text().into(), map }).map(BlockRv)
    }
}

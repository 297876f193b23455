//! `reindex_cache_write`

use crate::index::map::IndexMap;
use crate::program::Scope;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::check::buffer::scope_named;
use crate::schedule::edit::reindex_write;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, Schedule, ScheduleError, Value};
use crate::stmt::Symbol;

/// Lets a block write a buffer of its own, laid out by its iterators: the map gives the position of the
/// element of each point. A new block moves the elements to the original afterwards.
///
/// ```text
/// before
/// kernel sums(in a: f32[8, 3], out b: f32[16]) {
///   for i in 0..8 {
///     for r in 0..3 {
///       block b(vi: spatial 8 = i, vr: reduce 3 = r) {
///         init {
///           b[vi*2] = 0.0
///         }
///         b[vi*2] = b[vi*2] + a[vi, vr]
///       }
///     }
///   }
/// }
/// apply
/// %0 = get_block "b"
/// %1 = reindex_cache_write %0, "local", (i, r) -> (i/4, i%4)
/// after
/// kernel sums(in a: f32[8, 3], out b: f32[16]) {
///   buffer b_local: f32[2, 4] local
///   for i in 0..8 {
///     for r in 0..3 {
///       block b(vi: spatial 8 = i, vr: reduce 3 = r) {
///         init {
///           b_local[vi/4, vi%4] = 0.0
///         }
///         b_local[vi/4, vi%4] = b_local[vi/4, vi%4] + a[vi, vr]
///       }
///     }
///   }
///   for a0 in 0..8 {
///     block b_copy(v0: spatial 8 = a0) {
///       b[v0*2] = b_local[v0/4, v0%4]
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ReindexCacheWrite {
    /// The block that writes, alone, one element for each value of its spatial iterators.
    pub block: BlockRv,
    /// Where its new buffer lives: `global`, `local` or `shared`.
    pub scope: Symbol,
    /// From the block's iterators to indices of the new buffer; depends on the iterators that choose the element.
    pub map: IndexMap,
}

impl Default for ReindexCacheWrite {
    fn default() -> Self {
        let scope = Scope::Global.text().into();
        ReindexCacheWrite { block: BlockRv::default(), scope, map: IndexMap::default() }
    }
}

impl Primitive for ReindexCacheWrite {
    const NAME: &'static str = "reindex_cache_write";

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))?;
        visitor.visit(Argument::Text(&mut self.scope))?;
        visitor.visit(Argument::Map(&mut self.map))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.block(self.block)?;
        let scope = scope_named(&self.scope)?;
        let made = reindex_write(context.program, id, scope, &|_| self.map.clone())?;
        Ok(Outputs::from_slice(&[Value::Block(made)]))
    }
}

impl Schedule {
    /// Lets a block write a buffer of its own, laid out by its iterators, and gives the block that moves the elements to
    /// the original. See [`ReindexCacheWrite`].
    ///
    /// # Errors
    /// When the block is not the only writer of its buffer, or the map loses elements.
    pub fn reindex_cache_write(
        &mut self,
        block: BlockRv,
        scope: Scope,
        map: IndexMap,
    ) -> Result<BlockRv, ScheduleError> {
        self.push_one(ReindexCacheWrite { block, scope: scope.text().into(), map }).map(BlockRv)
    }
}

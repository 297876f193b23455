//! `reindex`

use crate::expr::Indices;
use crate::ids::VarId;
use crate::index::Index;
use crate::index::map::IndexMap;
use crate::program::Scope;
use crate::schedule::elements::iters_in;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::check::buffer::accessed_buffer;
use crate::schedule::edit::{reindex_read, reindex_write};
use crate::schedule::find::require_block;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, Schedule, ScheduleError, Value};
use crate::stmt::{Block, Symbol};

/// Lets a block access a buffer through a copy that is indexed by just those of its iterators that choose the
/// element, in their order. The block then has the plain form of tensor intrinsics.
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
/// %1 = reindex %0, "read", 0
/// after
/// kernel windows(in a: f32[10], in w: f32[3], out b: f32[8]) {
///   buffer a_global: f32[8, 3] global
///   for a0 in 0..8 {
///     for a1 in 0..3 {
///       block a_global(v0: spatial 8 = a0, v1: spatial 3 = a1) {
///         a_global[v0, v1] = a[v0 + v1]
///       }
///     }
///   }
///   for i in 0..8 {
///     for r in 0..3 {
///       block b(vi: spatial 8 = i, vr: reduce 3 = r) {
///         init {
///           b[vi] = 0.0
///         }
///         b[vi] = b[vi] + a_global[vi, vr] * w[vr]
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Reindex {
    /// The block.
    pub block: BlockRv,
    /// Whether the buffer is one that it reads, or writes: `read` or `write`.
    pub access: Symbol,
    /// Which one, in order of appearance, from 0.
    pub number: i64,
}

impl Default for Reindex {
    fn default() -> Self {
        Reindex { block: BlockRv::default(), access: "read".into(), number: 0 }
    }
}

impl Primitive for Reindex {
    const NAME: &'static str = "reindex";

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))?;
        visitor.visit(Argument::Text(&mut self.access))?;
        visitor.visit(Argument::Number(&mut self.number))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.block(self.block)?;
        let block = require_block(context.program, id)?.clone();
        accessed_buffer(&block, &self.access, self.number)?;
        let map_for = |element: &Indices| choosing_iters(&block, element);
        let made = match &*self.access {
            "read" => reindex_read(context.program, id, self.number, Scope::Global, &map_for)?,
            _ => reindex_write(context.program, id, Scope::Global, &map_for)?,
        };
        Ok(Outputs::from_slice(&[Value::Block(made)]))
    }
}

/// The map to the iterators that indices depend on.
fn choosing_iters(block: &Block, element: &Indices) -> IndexMap {
    let chosen = iters_in(block, element).into_iter().map(|position| Index::var(VarId(position as u32)));
    IndexMap::new(block.iters.len() as u32, chosen.collect()).unwrap_or_default()
}

impl Schedule {
    /// Lets a block access a buffer through a copy that is indexed by its iterators, and gives the block that copies.
    /// See [`Reindex`].
    ///
    /// # Errors
    /// When the block accesses several elements at a point.
    pub fn reindex(&mut self, block: BlockRv, access: &str, number: i64) -> Result<BlockRv, ScheduleError> {
        self.push_one(Reindex { block, access: access.into(), number }).map(BlockRv)
    }
}

//! `transform_layout`

use crate::analysis::block::{reads, writes};
use crate::analysis::scope::blocks;
use crate::expr::Indices;
use crate::ids::{BlockId, BufferId};
use crate::index::map::IndexMap;
use crate::program::Program;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::check::buffer::accessed_intermediate;
use crate::schedule::edit::{block_ranges, edit_block, redirect_accesses};
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, Schedule, ScheduleError};
use crate::stmt::Symbol;

/// Changes the layout of an intermediate: each element moves to the indices that the map gives for its old ones, in every
/// block that accesses the buffer. The map must be injective. Positions without an element, such as those beyond a size
/// that the map does not divide, are never read. An alignment is dropped.
///
/// ```text
/// before
/// kernel chain(in a: f32[6, 10], out c: f32[6, 10]) {
///   buffer b: f32[6, 10] global
///   for i in 0..6 {
///     for j in 0..10 {
///       block b(vi: spatial 6 = i, vj: spatial 10 = j) {
///         b[vi, vj] = a[vi, vj] + 1.0
///       }
///     }
///   }
///   for i in 0..6 {
///     for j in 0..10 {
///       block c(vi: spatial 6 = i, vj: spatial 10 = j) {
///         c[vi, vj] = b[vi, vj] * 2.0
///       }
///     }
///   }
/// }
/// apply
/// %0 = get_block "b"
/// transform_layout %0, "write", 0, (i, j) -> (j/4, i, j%4)
/// after
/// kernel chain(in a: f32[6, 10], out c: f32[6, 10]) {
///   buffer b: f32[3, 6, 4] global
///   for i in 0..6 {
///     for j in 0..10 {
///       block b(vi: spatial 6 = i, vj: spatial 10 = j) {
///         b[vj/4, vi, vj%4] = a[vi, vj] + 1.0
///       }
///     }
///   }
///   for i_1 in 0..6 {
///     for j_1 in 0..10 {
///       block c(vi_1: spatial 6 = i_1, vj_1: spatial 10 = j_1) {
///         c[vi_1, vj_1] = b[vj_1/4, vi_1, vj_1%4] * 2.0
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TransformLayout {
    /// A block that accesses the buffer.
    pub block: BlockRv,
    /// Whether the buffer is one that it reads, or writes: `read` or `write`.
    pub access: Symbol,
    /// Which one, in order of appearance, from 0.
    pub number: i64,
    /// From old indices to new ones.
    pub map: IndexMap,
}

impl Default for TransformLayout {
    fn default() -> Self {
        TransformLayout {
            block: BlockRv::default(),
            access: "read".into(),
            number: 0,
            map: IndexMap::default(),
        }
    }
}

impl Primitive for TransformLayout {
    const NAME: &'static str = "transform_layout";

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))?;
        visitor.visit(Argument::Text(&mut self.access))?;
        visitor.visit(Argument::Number(&mut self.number))?;
        visitor.visit(Argument::Map(&mut self.map))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.block(self.block)?;
        let program = &mut *context.program;
        let buffer = accessed_intermediate(program, id, &self.access, self.number)?;
        let shape = self.map.image(&program.buffer(buffer).shape).map_err(ScheduleError::BadMap)?;

        let accessing: Vec<BlockId> = blocks(&program.body)
            .into_iter()
            .filter(|block| reads(block).contains(&buffer) || writes(block).contains(&buffer))
            .map(|block| block.id)
            .collect();
        program.buffer_mut(buffer).shape = shape;
        program.forget_alignments(buffer);
        program.forget_swizzle(buffer);
        for block in accessing {
            move_elements(program, block, buffer, &self.map);
        }
        Ok(Outputs::new())
    }
}

/// Lets a block access the elements of a buffer where a map sends them.
fn move_elements(program: &mut Program, block: BlockId, buffer: BufferId, map: &IndexMap) {
    let dtype = program.buffer(buffer).dtype;
    edit_block(&mut program.body, block, &mut |block| {
        let ranges = block_ranges(block);
        let moved = |indices: &Indices| -> (BufferId, Indices) {
            (buffer, map.apply(indices).iter().map(|index| index.simplify(&ranges)).collect())
        };
        redirect_accesses(block, buffer, dtype, &moved);
    });
}

impl Schedule {
    /// Changes how the elements of an intermediate are laid out. See [`TransformLayout`].
    ///
    /// # Errors
    /// When there is no such access, the buffer is a parameter, or the map sends two elements to one place.
    pub fn transform_layout(
        &mut self,
        block: BlockRv,
        access: &str,
        number: i64,
        map: IndexMap,
    ) -> Result<(), ScheduleError> {
        self.push(TransformLayout { block, access: access.into(), number, map }, None).map(drop)
    }
}

//! `storage_align`

use crate::program::Alignment;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::check::buffer::accessed_intermediate;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, Schedule, ScheduleError};

/// Aligns the distance in memory of neighbours along a dimension of an intermediate: it becomes the least one that
/// is `offset` more than a multiple of `factor`, in elements. Rows whose distance is a power of two compete for
/// the same place in a cache; an odd number of cache lines keeps them apart.
///
/// ```text
/// before
/// kernel chain(in a: f32[8, 64], out c: f32[8, 64]) {
///   buffer b: f32[8, 64] global
///   for i in 0..8 {
///     for j in 0..64 {
///       block b(vi: spatial 8 = i, vj: spatial 64 = j) {
///         b[vi, vj] = a[vi, vj] + 1.0
///       }
///     }
///   }
///   for j in 0..64 {
///     for i in 0..8 {
///       block c(vi: spatial 8 = i, vj: spatial 64 = j) {
///         c[vi, vj] = b[vi, vj] * 2.0
///       }
///     }
///   }
/// }
/// apply
/// %0 = get_block "b"
/// storage_align %0, 0, 0, 32, 16
/// after
/// kernel chain(in a: f32[8, 64], out c: f32[8, 64]) {
///   buffer b: f32[8, 64] global aligned 0 32 16
///   for i in 0..8 {
///     for j in 0..64 {
///       block b(vi: spatial 8 = i, vj: spatial 64 = j) {
///         b[vi, vj] = a[vi, vj] + 1.0
///       }
///     }
///   }
///   for j_1 in 0..64 {
///     for i_1 in 0..8 {
///       block c(vi_1: spatial 8 = i_1, vj_1: spatial 64 = j_1) {
///         c[vi_1, vj_1] = b[vi_1, vj_1] * 2.0
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StorageAlign {
    /// A block that writes the buffer.
    pub block: BlockRv,
    /// Which of the buffers it writes, in order of appearance, from 0.
    pub write: i64,
    /// The dimension, from 0; negative counts from the end. Not the last one.
    pub axis: i64,
    /// The distance is a multiple of this, plus the offset.
    pub factor: i64,
    /// The distance minus the multiple.
    pub offset: i64,
}

impl Primitive for StorageAlign {
    const NAME: &'static str = "storage_align";
    const KEEPS_ORDER: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))?;
        visitor.visit(Argument::Number(&mut self.write))?;
        visitor.visit(Argument::Number(&mut self.axis))?;
        visitor.visit(Argument::Number(&mut self.factor))?;
        visitor.visit(Argument::Number(&mut self.offset))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.block(self.block)?;
        let program = &mut *context.program;
        let buffer = accessed_intermediate(program, id, "write", self.write)?;
        let rank = program.buffer(buffer).shape.len() as i64;
        let axis = if self.axis < 0 { self.axis.saturating_add(rank) } else { self.axis };
        if !(0..rank - 1).contains(&axis) {
            return Err(ScheduleError::AxisOutOfRange(self.axis));
        }
        let is_sound =
            (1..=Alignment::MAX_FACTOR).contains(&self.factor) && (0..self.factor).contains(&self.offset);
        if !is_sound {
            return Err(ScheduleError::BadAlignment);
        }
        program.forget_swizzle(buffer);
        program.align(buffer, axis as usize, Alignment { factor: self.factor, offset: self.offset });
        Ok(Outputs::new())
    }
}

impl Schedule {
    /// Aligns the distance of neighbours along a dimension of an intermediate. See [`StorageAlign`].
    ///
    /// # Errors
    /// When the block writes no such buffer, it is a parameter, or the dimension is the last one.
    pub fn storage_align(
        &mut self,
        block: BlockRv,
        write: i64,
        axis: i64,
        factor: i64,
        offset: i64,
    ) -> Result<(), ScheduleError> {
        self.push(StorageAlign { block, write, axis, factor, offset }, None).map(drop)
    }
}

//! `storage_swizzle`

use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::check::buffer::accessed_intermediate;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, Schedule, ScheduleError};
use crate::swizzle::Swizzle;

/// Exchanges the pieces of 16 bytes in the rows of an intermediate, each row in another way, so that a column of pieces lies in different banks
/// of shared memory. Rows are the last dimension. See [`swizzle`](crate::swizzle).
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
/// storage_swizzle %0, 0
/// after
/// kernel chain(in a: f32[8, 64], out c: f32[8, 64]) {
///   buffer b: f32[8, 64] global swizzled
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
pub struct StorageSwizzle {
    /// A block that writes the buffer.
    pub block: BlockRv,
    /// Which of the buffers it writes, in order of appearance, from 0.
    pub write: i64,
}

impl Primitive for StorageSwizzle {
    const NAME: &'static str = "storage_swizzle";
    const KEEPS_ORDER: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))?;
        visitor.visit(Argument::Number(&mut self.write))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.block(self.block)?;
        let program = &mut *context.program;
        let buffer = accessed_intermediate(program, id, "write", self.write)?;
        if program.buffer(buffer).shape.len() < 2 {
            return Err(ScheduleError::AxisOutOfRange(0));
        }
        program.forget_alignments(buffer);
        program.set_swizzle(buffer, Swizzle::default());
        Ok(Outputs::new())
    }
}

impl Schedule {
    /// Exchanges pieces of the rows of an intermediate. See [`StorageSwizzle`].
    ///
    /// # Errors
    /// When the block writes no such buffer, it is a parameter, or it has one dimension.
    pub fn storage_swizzle(&mut self, block: BlockRv, write: i64) -> Result<(), ScheduleError> {
        self.push(StorageSwizzle { block, write }, None).map(drop)
    }
}

//! `stream_writes`

use crate::analysis::scope::readers;
use crate::program::Scope;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::check::buffer::accessed_buffer;
use crate::schedule::find::require_block;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, Schedule, ScheduleError};

/// Writes a result by streaming stores, which bypass the caches, on machines that have them. A line is then not read from
/// memory before it is written, and evicts no other line. That pays for a result that is larger than the caches. It costs time
/// where a later load would find the result in a cache.
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
/// stream_writes %0, 0
/// after
/// kernel copy(in a: f32[12], out b: f32[12] streamed) {
///   for i in 0..12 {
///     block b(v: spatial 12 = i) {
///       b[v] = a[v]
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamWrites {
    /// A block that writes the result.
    pub block: BlockRv,
    /// Which of the buffers it writes, in order of appearance, from 0.
    pub write: i64,
}

impl Primitive for StreamWrites {
    const NAME: &'static str = "stream_writes";
    const KEEPS_ORDER: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))?;
        visitor.visit(Argument::Number(&mut self.write))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.block(self.block)?;
        let buffer = accessed_buffer(require_block(context.program, id)?, "write", self.write)?;
        if context.program.access(buffer).is_none() {
            return Err(ScheduleError::NotResult { block: id, buffer });
        }
        if let Some(reader) = readers(context.program, buffer).first() {
            return Err(ScheduleError::ReadAgain { block: reader.id, buffer });
        }
        context.program.buffer_mut(buffer).scope = Scope::Streamed;
        Ok(Outputs::new())
    }
}

impl Schedule {
    /// Writes a result by streaming stores. See [`StreamWrites`].
    ///
    /// # Errors
    /// When the block writes no such buffer, it is an intermediate, or something reads it.
    pub fn stream_writes(&mut self, block: BlockRv, write: i64) -> Result<(), ScheduleError> {
        self.push(StreamWrites { block, write }, None).map(drop)
    }
}

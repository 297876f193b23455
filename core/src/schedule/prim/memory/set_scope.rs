//! `set_scope`

use crate::program::Scope;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::check::buffer::{accessed_buffer, scope_named};
use crate::schedule::find::require_block;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, Schedule, ScheduleError};
use crate::stmt::Symbol;

/// Fixes where an intermediate lives. Lowering, which otherwise chooses by size and sharing, keeps the scope or fails.
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
/// set_scope %0, 0, "local"
/// after
/// kernel chain(in a: f32[8], out c: f32[8]) {
///   buffer b: f32[8] local fixed
///   for i in 0..8 {
///     block b(v: spatial 8 = i) {
///       b[v] = a[v] + 1.0
///     }
///   }
///   for i_1 in 0..8 {
///     block c(v_1: spatial 8 = i_1) {
///       c[v_1] = b[v_1] * 2.0
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SetScope {
    /// A block that writes the buffer.
    pub block: BlockRv,
    /// Which of the buffers it writes, in order of appearance, from 0.
    pub write: i64,
    /// Where the buffer is to live: `global`, `local` or `shared`.
    pub scope: Symbol,
}

impl Default for SetScope {
    fn default() -> Self {
        SetScope { block: BlockRv::default(), write: 0, scope: Scope::Local.text().into() }
    }
}

impl Primitive for SetScope {
    const NAME: &'static str = "set_scope";
    const KEEPS_ORDER: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))?;
        visitor.visit(Argument::Number(&mut self.write))?;
        visitor.visit(Argument::Text(&mut self.scope))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.block(self.block)?;
        let scope = scope_named(&self.scope)?;
        let buffer = accessed_buffer(require_block(context.program, id)?, "write", self.write)?;
        if context.program.access(buffer).is_some() {
            return Err(ScheduleError::ParameterBuffer { block: id, buffer });
        }
        context.program.fix_scope(buffer, scope);
        Ok(Outputs::new())
    }
}

impl Schedule {
    /// Says where an intermediate lives. See [`SetScope`].
    ///
    /// # Errors
    /// When the block writes no such buffer, or it is a parameter.
    pub fn set_scope(&mut self, block: BlockRv, write: i64, scope: Scope) -> Result<(), ScheduleError> {
        self.push(SetScope { block, write, scope: scope.text().into() }, None).map(drop)
    }
}

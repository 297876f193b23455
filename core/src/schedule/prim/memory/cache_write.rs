//! `cache_write`

use crate::analysis::block::{covers_buffer, single_store};
use crate::expr::Indices;
use crate::program::{Buffer, Scope};
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::check::buffer::{check_sole_writer, scope_named};
use crate::schedule::edit::{copy_nest, edit_block, fresh_block_name, insert_statement, redirect_accesses};
use crate::schedule::find::require_block;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, Schedule, ScheduleError, Value};
use crate::stmt::Symbol;

/// Lets a block write a buffer of its own, which a new block copies to the original after it.
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
/// %1 = cache_write %0, "local"
/// after
/// kernel copy(in a: f32[12], out b: f32[12]) {
///   buffer b_local: f32[12] local
///   for i in 0..12 {
///     block b(v: spatial 12 = i) {
///       b_local[v] = a[v]
///     }
///   }
///   for a0 in 0..12 {
///     block b_copy(v0: spatial 12 = a0) {
///       b[v0] = b_local[v0]
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CacheWrite {
    /// The block that writes, alone, all of its buffer.
    pub block: BlockRv,
    /// Where its new buffer lives: `global`, `local` or `shared`.
    pub scope: Symbol,
}

impl Default for CacheWrite {
    fn default() -> Self {
        CacheWrite { block: BlockRv::default(), scope: Scope::Local.text().into() }
    }
}

impl Primitive for CacheWrite {
    const NAME: &'static str = "cache_write";

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))?;
        visitor.visit(Argument::Text(&mut self.scope))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.block(self.block)?;
        let scope = scope_named(&self.scope)?;
        let program = &mut *context.program;
        let block = require_block(program, id)?;
        let store = single_store(block).ok_or(ScheduleError::NotComplete(id))?;
        let target = store.buffer;
        let position = check_sole_writer(program, block, target)?;
        if !covers_buffer(block, store, &program.buffer(target).shape) {
            return Err(ScheduleError::NotFilled { block: id, buffer: target });
        }

        let original = program.buffer(target).clone();
        let name: Symbol = format!("{}_{}", original.name, scope.text()).into();
        let dtype = original.dtype;
        let cache = program.add_buffer(Buffer { name: name.clone(), scope, ..original });
        edit_block(&mut program.body, id, &mut |block| {
            redirect_accesses(block, target, dtype, &|indices: &Indices| (cache, indices.clone()));
        });
        let copy_name = fresh_block_name(program, &format!("{}_copy", program.buffer(target).name));
        let nest = copy_nest(program, copy_name, cache, target);
        let made = crate::analysis::scope::blocks(&nest)[0].id;
        insert_statement(&mut program.body, position + 1, nest);
        Ok(Outputs::from_slice(&[Value::Block(made)]))
    }
}

impl Schedule {
    /// Lets a block write a buffer of its own, and gives the block that copies it to the original. See [`CacheWrite`].
    ///
    /// # Errors
    /// When the block is not the only writer of its buffer, or does not write all of it.
    pub fn cache_write(&mut self, block: BlockRv, scope: Scope) -> Result<BlockRv, ScheduleError> {
        self.push_one(CacheWrite { block, scope: scope.text().into() }).map(BlockRv)
    }
}

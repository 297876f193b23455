//! `cache_read`

use crate::analysis::block::reads;
use crate::analysis::coverage::is_wholly_written;
use crate::expr::{Expr, Indices};
use crate::program::{Buffer, Scope};
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::check::buffer::{check_finished, scope_named};
use crate::schedule::edit::{copy_nest, edit_block, fresh_block_name, insert_statement, replace_loads};
use crate::schedule::find::require_block;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, Schedule, ScheduleError, Value};
use crate::stmt::Symbol;

/// Lets a block read a copy of a buffer, which a new block makes before it. Computing that block at a
/// loop makes the copy a tile.
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
/// %1 = cache_read %0, 0, "local"
/// after
/// kernel copy(in a: f32[12], out b: f32[12]) {
///   buffer a_local: f32[12] local
///   for a0 in 0..12 {
///     block a_local(v0: spatial 12 = a0) {
///       a_local[v0] = a[v0]
///     }
///   }
///   for i in 0..12 {
///     block b(v: spatial 12 = i) {
///       b[v] = a_local[v]
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CacheRead {
    /// The block that reads.
    pub block: BlockRv,
    /// Which of the buffers it reads, in order of appearance, from 0.
    pub read: i64,
    /// Where the copy lives: `global`, `local` or `shared`.
    pub scope: Symbol,
}

impl Default for CacheRead {
    fn default() -> Self {
        CacheRead { block: BlockRv::default(), read: 0, scope: Scope::Local.text().into() }
    }
}

impl Primitive for CacheRead {
    const NAME: &'static str = "cache_read";
    const KEEPS_ORDER: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))?;
        visitor.visit(Argument::Number(&mut self.read))?;
        visitor.visit(Argument::Text(&mut self.scope))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.block(self.block)?;
        let scope = scope_named(&self.scope)?;
        let program = &mut *context.program;
        let block = require_block(program, id)?;
        let missing = ScheduleError::NoSuchAccess { block: id, number: self.read };
        let number = usize::try_from(self.read).map_err(|_| missing)?;
        let source = *reads(block).get(number).ok_or(missing)?;
        let position = check_finished(program, block, source)?;
        if !is_wholly_written(program, source) {
            return Err(ScheduleError::PartlyWritten { block: id, buffer: source });
        }

        let original = program.buffer(source).clone();
        let name: Symbol = format!("{}_{}", original.name, scope.text()).into();
        let dtype = original.dtype;
        let copy = program.add_buffer(Buffer { name: name.clone(), scope, ..original });
        let copy_name = fresh_block_name(program, &name);
        let nest = copy_nest(program, copy_name, source, copy);
        let made = crate::analysis::scope::blocks(&nest)[0].id;
        edit_block(&mut program.body, id, &mut |block| {
            let load_copy = |indices: &Indices| Expr::load(dtype, copy, indices.iter().cloned());
            for part in block.init.iter_mut().chain([&mut block.body]) {
                replace_loads(part, source, &load_copy);
            }
        });
        insert_statement(&mut program.body, position, nest);
        Ok(Outputs::from_slice(&[Value::Block(made)]))
    }
}

impl Schedule {
    /// Lets a block read a copy of the `read`-th buffer it reads, and gives the block that makes the copy. See [`CacheRead`].
    ///
    /// # Errors
    /// When there is no such read, or the buffer is not finished before the block's nest.
    pub fn cache_read(&mut self, block: BlockRv, read: i64, scope: Scope) -> Result<BlockRv, ScheduleError> {
        self.push_one(CacheRead { block, read, scope: scope.text().into() }).map(BlockRv)
    }
}

//! `cache_read`

use crate::analysis::block::{reads, writes};
use crate::analysis::coverage::{is_wholly_written, visits_domain};
use crate::analysis::scope::producers;
use crate::expr::{Expr, Indices};
use crate::ids::BufferId;
use crate::program::{Buffer, Program, Scope};
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::edit::{
    copy_nest, edit_block, fresh_block_name, insert_statement, replace_loads, require_block, root_position,
};
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, Schedule, ScheduleError, Value};
use crate::stmt::{Block, Symbol};

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
    /// Where the copy lives: `global` or `local`.
    pub scope: Symbol,
}

impl Default for CacheRead {
    fn default() -> Self {
        CacheRead { block: BlockRv::default(), read: 0, scope: Scope::Local.text().into() }
    }
}

/// The scope of a name in a trace.
pub(super) fn scope_named(name: &str) -> Result<Scope, ScheduleError> {
    [Scope::Global, Scope::Local]
        .into_iter()
        .find(|scope| scope.text() == name)
        .ok_or(ScheduleError::BadDecision("the scope is `global` or `local`"))
}

/// Checks that a buffer which a block reads, and does not write, is finished before the block's nest; the answer is the
/// position of the nest.
pub(super) fn check_finished(
    program: &Program,
    block: &Block,
    source: BufferId,
) -> Result<usize, ScheduleError> {
    let position = root_position(program, block.id)?;
    let unfinished = producers(program, block).into_iter().find(|producer| {
        writes(producer).contains(&source)
            && root_position(program, producer.id).is_ok_and(|other| other >= position)
    });
    if let Some(producer) = unfinished {
        return Err(ScheduleError::ProducerOutside { block: block.id, producer: producer.id });
    }
    if writes(block).contains(&source) {
        return Err(ScheduleError::UpdatesInPlace { block: block.id, buffer: source });
    }
    Ok(position)
}

/// Checks that all that a block reads of a buffer over its whole domain is there, also where its loops leave a part of the
/// domain out.
pub(super) fn check_written(program: &Program, block: &Block, source: BufferId) -> Result<(), ScheduleError> {
    if is_wholly_written(program, source) || visits_domain(program, block) {
        return Ok(());
    }
    Err(ScheduleError::PartlyWritten { block: block.id, buffer: source })
}

impl Primitive for CacheRead {
    const NAME: &'static str = "cache_read";

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

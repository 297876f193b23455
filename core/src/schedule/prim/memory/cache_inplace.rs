//! `cache_inplace`

use crate::analysis::block::{loads, reads, writes};
use crate::analysis::scope::blocks;
use crate::expr::Indices;
use crate::ids::BlockId;
use crate::program::{Buffer, Program, Scope};
use crate::schedule::elements::{check_inside, copy_elements, iters_in, single_element};
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::check::buffer::{accessed_buffer, scope_named};
use crate::schedule::edit::{edit_block, fresh_block_name, insert_statement, redirect_accesses};
use crate::schedule::find::{require_block, root_position, statements};
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, Schedule, ScheduleError, Value};
use crate::stmt::{Block, Symbol};

/// Lets a block that updates a buffer in place update a copy: one new block copies the elements to it before, and
/// another one copies them back afterwards.
///
/// ```text
/// before
/// kernel scale(in a: f32[12], inout b: f32[12]) {
///   for i in 0..12 {
///     block b(v: spatial 12 = i) {
///       b[v] = b[v] * a[v]
///     }
///   }
/// }
/// apply
/// %0 = get_block "b"
/// %1, %2 = cache_inplace %0, 0, "local"
/// after
/// kernel scale(in a: f32[12], inout b: f32[12]) {
///   buffer b_local: f32[12] local
///   for a0 in 0..12 {
///     block b_local(v0: spatial 12 = a0) {
///       b_local[v0] = b[v0]
///     }
///   }
///   for i in 0..12 {
///     block b(v: spatial 12 = i) {
///       b_local[v] = b_local[v] * a[v]
///     }
///   }
///   for a0_1 in 0..12 {
///     block b_copy(v0_1: spatial 12 = a0_1) {
///       b[v0_1] = b_local[v0_1]
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CacheInplace {
    /// The block that updates.
    pub block: BlockRv,
    /// Which of the buffers it writes, in order of appearance, from 0.
    pub write: i64,
    /// Where the copy lives: `global`, `local` or `shared`.
    pub scope: Symbol,
}

impl Default for CacheInplace {
    fn default() -> Self {
        CacheInplace { block: BlockRv::default(), write: 0, scope: Scope::Local.text().into() }
    }
}

impl Primitive for CacheInplace {
    const NAME: &'static str = "cache_inplace";

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))?;
        visitor.visit(Argument::Number(&mut self.write))?;
        visitor.visit(Argument::Text(&mut self.scope))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.block(self.block)?;
        let scope = scope_named(&self.scope)?;
        let program = &mut *context.program;
        let block = require_block(program, id)?.clone();
        let buffer = accessed_buffer(&block, "write", self.write)?;
        let position = check_update(program, &block, buffer)?;
        let element = single_element(&block, buffer)?;
        check_inside(program, &block, buffer, &element)?;

        let original = program.buffer(buffer).clone();
        let (dtype, name) = (original.dtype, format!("{}_{}", original.name, scope.text()));
        let cache = program.add_buffer(Buffer { name: name.as_str().into(), scope, ..original.clone() });
        edit_block(&mut program.body, id, &mut |block| {
            let same_place = |indices: &Indices| (cache, indices.clone());
            redirect_accesses(block, buffer, dtype, &same_place);
        });
        let iters = iters_in(&block, &element);
        let before_name = fresh_block_name(program, &name);
        let (before, first) =
            copy_elements(program, before_name, (&block, &iters), (buffer, &element), (cache, &element));
        insert_statement(&mut program.body, position, before);
        let after_name = fresh_block_name(program, &format!("{}_copy", original.name));
        let (after, second) =
            copy_elements(program, after_name, (&block, &iters), (cache, &element), (buffer, &element));
        insert_statement(&mut program.body, position + 2, after);
        Ok(Outputs::from_slice(&[Value::Block(first), Value::Block(second)]))
    }
}

/// Checks that a block updates a buffer that no other block of its nest accesses; the answer is the nest's
/// position.
fn check_update(
    program: &Program,
    block: &Block,
    buffer: crate::ids::BufferId,
) -> Result<usize, ScheduleError> {
    let id: BlockId = block.id;
    if block.init.is_some() || !loads(&block.body).iter().any(|access| access.buffer == buffer) {
        return Err(ScheduleError::NotUpdate { block: id, buffer });
    }
    let position = root_position(program, id)?;
    let shares = |other: &&std::sync::Arc<Block>| {
        other.id != id && (reads(other).contains(&buffer) || writes(other).contains(&buffer))
    };
    match blocks(&statements(&program.body)[position]).into_iter().find(shares) {
        Some(other) => Err(ScheduleError::UsedElsewhere { buffer, by: other.id }),
        None => Ok(position),
    }
}

impl Schedule {
    /// Lets a block update a copy of a buffer, and gives the blocks that copy it before and afterwards. See
    /// [`CacheInplace`].
    ///
    /// # Errors
    /// When the block does not update such a buffer, one element at each point.
    pub fn cache_inplace(
        &mut self,
        block: BlockRv,
        write: i64,
        scope: Scope,
    ) -> Result<(BlockRv, BlockRv), ScheduleError> {
        let made = self.push_many(CacheInplace { block, write, scope: scope.text().into() })?;
        Ok((BlockRv(made.start), BlockRv(made.start + 1)))
    }
}

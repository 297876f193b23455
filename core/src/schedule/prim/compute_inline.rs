//! `compute_inline`

use crate::analysis::block::{complete_store, shifted_iters};
use crate::analysis::scope::{consumers, writers, writes_parameter};
use crate::expr::{Expr, Indices};
use crate::ids::BlockId;
use crate::index::Index;
use crate::program::Program;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::edit::{check_inputs_stay, edit_block, remove_block, replace_loads, require_block};
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, Schedule, ScheduleError};
use crate::stmt::Block;
use crate::visit::substitute_expr;

/// Puts a block's computation into each of its consumers, in place of the loads of its result.
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
/// compute_inline %0
/// after
/// kernel chain(in a: f32[8], out c: f32[8]) {
///   for i in 0..8 {
///     block c(v: spatial 8 = i) {
///       c[v] = (a[v] + 1.0) * 2.0
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComputeInline {
    /// The block: spatial, one store to `buffer[iterators…]`, not a parameter.
    pub block: BlockRv,
}

impl Primitive for ComputeInline {
    const NAME: &'static str = "compute_inline";

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        inline_block(context.program, context.values.block(self.block)?)
    }
}

/// Inlines a block into its consumers.
pub(super) fn inline_block(program: &mut Program, id: BlockId) -> Result<Outputs, ScheduleError> {
    let block = require_block(program, id)?.clone();
    let readers = check_inline(program, &block)?;
    let store = complete_store(&block).ok_or(ScheduleError::NotComplete(id))?;
    let expand = |indices: &Indices| -> Expr {
        let value_of = |var| {
            let dimension = store.indices.iter().position(|index| index.as_var() == Some(var));
            match dimension {
                Some(dimension) => Some(indices[dimension].clone()),
                // An iterator that the store does not mention has extent 1.
                None => block.iters.iter().any(|iter| iter.var == var).then(|| Index::constant(0)),
            }
        };
        substitute_expr(&store.value, &value_of)
    };
    remove_block(&mut program.body, id);
    for reader in readers {
        edit_block(&mut program.body, reader, &mut |block| {
            for part in block.init.iter_mut().chain([&mut block.body]) {
                replace_loads(part, store.buffer, &expand);
            }
        });
    }
    Ok(Outputs::new())
}

/// Checks that a block can be inlined; the answer is its consumers.
pub(super) fn check_inline(program: &Program, block: &Block) -> Result<Vec<BlockId>, ScheduleError> {
    let id = block.id;
    let store = complete_store(block).ok_or(ScheduleError::NotComplete(id))?;
    if writes_parameter(program, block) {
        return Err(ScheduleError::OutputBlock(id));
    }
    if writers(program, store.buffer).len() != 1 {
        return Err(ScheduleError::SeveralWriters(id));
    }
    let shifted = shifted_iters(&store.indices).ok_or(ScheduleError::NotInvertible(id))?;
    let is_plain = shifted.iter().all(|(_, shift)| *shift == 0);
    let all_used = block
        .iters
        .iter()
        .all(|iter| iter.extent.is(1) || shifted.iter().any(|(var, _)| *var == Some(iter.var)));
    if !is_plain || !all_used {
        return Err(ScheduleError::NotInvertible(id));
    }
    let readers = consumers(program, block);
    if readers.is_empty() {
        return Err(ScheduleError::NoNeighbour(id));
    }
    let readers: Vec<BlockId> = readers.iter().map(|reader| reader.id).collect();
    check_inputs_stay(program, block, &readers)?;
    Ok(readers)
}

impl Schedule {
    /// Puts a block's computation into each of its consumers. See [`ComputeInline`].
    ///
    /// # Errors
    /// When the block is no plain element-wise computation of an intermediate.
    pub fn compute_inline(&mut self, block: BlockRv) -> Result<(), ScheduleError> {
        self.push(ComputeInline { block }, None).map(drop)
    }
}

//! `reverse_compute_inline`

use crate::analysis::block::{complete_store, reads};
use crate::expr::Indices;
use crate::ids::VarId;
use crate::index::Index;
use crate::program::Program;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::check::inline::{Producer, sole_producer};
use crate::schedule::edit::{edit_block, remove_block, replace_loads_in};
use crate::schedule::find::require_block;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, Schedule, ScheduleError};
use crate::stmt::{Block, Stmt};
use crate::visit::substitute_expr;

/// Puts a block's computation into its producer, which then stores the block's result instead of its own.
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
/// %0 = get_block "c"
/// reverse_compute_inline %0
/// after
/// kernel chain(in a: f32[8], out c: f32[8]) {
///   for i in 0..8 {
///     block b(v: spatial 8 = i) {
///       c[v] = (a[v] + 1.0) * 2.0
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReverseComputeInline {
    /// The consumer: spatial, one store, reading its producer's whole result element by element.
    pub block: BlockRv,
}

impl Primitive for ReverseComputeInline {
    const NAME: &'static str = "reverse_compute_inline";

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.block(self.block)?;
        let block = require_block(context.program, id)?.clone();
        let found = find_producer(context.program, &block)?;
        let producer = require_block(context.program, found.producer)?.clone();
        let made = complete_store(&producer).ok_or(ScheduleError::NotComplete(found.producer))?;
        let store = complete_store(&block).ok_or(ScheduleError::NotComplete(id))?;

        let value_of = |var: VarId| -> Option<Index> {
            let dimension = found.iters.iter().position(|iter| *iter == Some(var));
            match dimension {
                Some(dimension) => Some(made.indices[dimension].clone()),
                None => block.iters.iter().any(|iter| iter.var == var).then(|| Index::constant(0)),
            }
        };
        let fed = replace_loads_in(&store.value, found.buffer, &|_| made.value.clone());
        // The producer's own iterators are not the block's, so substituting afterwards is safe.
        let value = substitute_expr(fed.as_ref().unwrap_or(&store.value), &value_of);
        let indices: Indices = store.indices.iter().map(|index| index.substitute(&value_of)).collect();
        let merged = Stmt::store(store.buffer, indices, value);

        remove_block(&mut context.program.body, id);
        edit_block(&mut context.program.body, found.producer, &mut |producer| producer.body = merged.clone());
        Ok(Outputs::new())
    }
}

/// The complete producer whose whole result the block reads, element by element, as its only reader.
fn find_producer(program: &Program, block: &Block) -> Result<Producer, ScheduleError> {
    let id = block.id;
    let store = complete_store(block).ok_or(ScheduleError::NotComplete(id))?;
    let mut refusal = ScheduleError::NoNeighbour(id);
    for buffer in reads(block) {
        if program.access(buffer).is_some() {
            continue;
        }
        match sole_producer(program, block, store.buffer, buffer, &complete_store) {
            Ok(found) => return Ok(found),
            Err(error) => refusal = error,
        }
    }
    Err(refusal)
}

impl Schedule {
    /// Puts a block's computation into its producer. See [`ReverseComputeInline`].
    ///
    /// # Errors
    /// When the producer is no plain element-wise computation whose whole result only this block reads.
    pub fn reverse_compute_inline(&mut self, block: BlockRv) -> Result<(), ScheduleError> {
        self.push(ReverseComputeInline { block }, None).map(drop)
    }
}

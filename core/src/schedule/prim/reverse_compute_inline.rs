//! `reverse_compute_inline`

use crate::analysis::block::{complete_store, covers_buffer, loads, reads, shifted_iters, writes};
use crate::analysis::scope::{blocks, loops_around, readers, writers};
use crate::expr::Indices;
use crate::ids::{BlockId, BufferId, VarId};
use crate::index::Index;
use crate::program::Program;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::edit::{contains_block, edit_block, remove_block, replace_loads_in, require_block};
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, Schedule, ScheduleError};
use crate::stmt::{Block, Stmt, Store};
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

/// A block that makes what another one reads element by element.
pub(super) struct Producer {
    pub(super) producer: BlockId,
    pub(super) buffer: BufferId,
    /// The block's iterator that indexes each dimension of the buffer.
    pub(super) iters: Vec<Option<VarId>>,
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
        match candidate(program, block, store.buffer, buffer, &complete_store) {
            Ok(found) => return Ok(found),
            Err(error) => refusal = error,
        }
    }
    Err(refusal)
}

/// The producer of `buffer`, whose store `made_by` gives when it is of the right form, when `block` is its only
/// reader, reads all of it element by element, and may as well write `output` in its place.
pub(super) fn candidate(
    program: &Program,
    block: &Block,
    output: BufferId,
    buffer: BufferId,
    made_by: &dyn Fn(&Block) -> Option<&Store>,
) -> Result<Producer, ScheduleError> {
    let id = block.id;
    let [producer] = writers(program, buffer)[..] else { return Err(ScheduleError::SeveralWriters(id)) };
    if let Some(other) = readers(program, buffer).into_iter().find(|reader| reader.id != id) {
        return Err(ScheduleError::UsedElsewhere { buffer, by: other.id });
    }
    let [_] = writers(program, output)[..] else { return Err(ScheduleError::SeveralWriters(id)) };
    let made = made_by(producer).ok_or(ScheduleError::NotComplete(producer.id))?;
    let shape = &program.buffer(buffer).shape;
    if !covers_buffer(producer, made, shape) {
        return Err(ScheduleError::NotInvertible(producer.id));
    }
    let accesses = loads(&block.body);
    let mut own = accesses.iter().filter(|access| access.buffer == buffer);
    let first = own.next().ok_or(ScheduleError::NoNeighbour(id))?;
    let shifted = shifted_iters(first.indices).ok_or(ScheduleError::NotInvertible(id))?;
    let covers_block = block.iters.iter().all(|iter| {
        let dimension = shifted.iter().position(|(var, shift)| *var == Some(iter.var) && *shift == 0);
        match dimension {
            Some(dimension) => shape[dimension] == iter.extent,
            None => iter.extent.is(1),
        }
    });
    let plain = shifted.iter().zip(shape).all(|((var, shift), extent)| *shift == 0 && (var.is_some() || extent.is(1)));
    if !covers_block || !plain || own.any(|access| access.indices != first.indices) {
        return Err(ScheduleError::NotInvertible(id));
    }
    // Writing where the producer still reads would change what it reads, and so would writing before another
    // iteration of a loop that the block comes into.
    if reads(producer).contains(&output) {
        return Err(ScheduleError::UsedElsewhere { buffer: output, by: producer.id });
    }
    let around = loops_around(&program.body, producer.id).unwrap_or_default();
    let entered = around.into_iter().find(|node| !contains_block(&node.body, id));
    let inside = entered.map(|node| blocks(&node.body)).unwrap_or_default();
    let inputs = reads(block);
    let meets = |other: &&std::sync::Arc<Block>| {
        let written = writes(other);
        other.id != producer.id
            && (written.contains(&output)
                || reads(other).contains(&output)
                || written.iter().any(|buffer| inputs.contains(buffer)))
    };
    if let Some(other) = inside.into_iter().find(meets) {
        return Err(ScheduleError::ProducerOutside { block: id, producer: other.id });
    }
    // Nothing that the block reads besides may be made after the producer runs.
    let order: Vec<BlockId> =
        crate::analysis::scope::blocks(&program.body).iter().map(|block| block.id).collect();
    let place = |id: BlockId| order.iter().position(|other| *other == id);
    for other in crate::analysis::scope::producers(program, block) {
        if other.id != producer.id && place(other.id) >= place(producer.id) {
            return Err(ScheduleError::ProducerOutside { block: id, producer: other.id });
        }
    }
    let between = |other: BlockId| place(other) > place(producer.id) && place(other) < place(id);
    if let Some(other) = readers(program, output).into_iter().find(|reader| between(reader.id)) {
        return Err(ScheduleError::UsedElsewhere { buffer: output, by: other.id });
    }
    Ok(Producer { producer: producer.id, buffer, iters: shifted.into_iter().map(|(var, _)| var).collect() })
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

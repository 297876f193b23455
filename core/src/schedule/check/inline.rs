//! Whether a block can be computed in its consumers, or in its producer.

use std::sync::Arc;

use crate::analysis::block::{complete_store, covers_buffer, loads, reads, shifted_iters, writes};
use crate::analysis::scope::{
    blocks, consumers, loops_around, producers, readers, writers, writes_parameter,
};
use crate::ids::{BlockId, BufferId, VarId};
use crate::program::Program;
use crate::schedule::ScheduleError;
use crate::schedule::find::contains_block;
use crate::stmt::{Block, Store};

/// Checks that a block can be inlined; the answer is its consumers.
pub(in crate::schedule) fn check_inline(
    program: &Program,
    block: &Block,
) -> Result<Vec<BlockId>, ScheduleError> {
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

/// Checks that nothing the block reads is written between it and the last of its consumers, so that it
/// may as well compute there: neither on the way nor in another iteration of a loop that it comes into.
pub(in crate::schedule) fn check_inputs_stay(
    program: &Program,
    block: &Block,
    consumers: &[BlockId],
) -> Result<(), ScheduleError> {
    let inputs = reads(block);
    let order = blocks(&program.body);
    let own = order.iter().position(|other| other.id == block.id);
    let last = order.iter().rposition(|other| consumers.contains(&other.id));
    let (Some(own), Some(last)) = (own, last) else { return Ok(()) };
    let overwrites = |other: &Block| writes(other).iter().any(|buffer| inputs.contains(buffer));
    let refusal = |other: BlockId| ScheduleError::ProducerOutside { block: block.id, producer: other };
    for other in order.iter().take(last + 1).skip(own + 1) {
        if overwrites(other) {
            return Err(refusal(other.id));
        }
    }
    for consumer in consumers {
        let around = loops_around(&program.body, *consumer).unwrap_or_default();
        let entered = around.into_iter().find(|node| !contains_block(&node.body, block.id));
        let inside = entered.map(|node| blocks(&node.body)).unwrap_or_default();
        if let Some(other) = inside.into_iter().find(|other| overwrites(other)) {
            return Err(refusal(other.id));
        }
    }
    Ok(())
}

/// A block that makes what another one reads element by element.
pub(in crate::schedule) struct Producer {
    pub(in crate::schedule) producer: BlockId,
    pub(in crate::schedule) buffer: BufferId,
    /// The block's iterator that indexes each dimension of the buffer.
    pub(in crate::schedule) iters: Vec<Option<VarId>>,
}

/// The producer of `buffer`, whose store `made_by` gives when it is of the right form, when `block` is its only
/// reader, reads all of it element by element, and may as well write `output` in its place.
pub(in crate::schedule) fn sole_producer(
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
    let plain = shifted
        .iter()
        .zip(shape)
        .all(|((var, shift), extent)| *shift == 0 && (var.is_some() || extent.is(1)));
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
    let meets = |other: &&Arc<Block>| {
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
    let order: Vec<BlockId> = blocks(&program.body).iter().map(|block| block.id).collect();
    let place = |id: BlockId| order.iter().position(|other| *other == id);
    for other in producers(program, block) {
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

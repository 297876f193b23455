//! Whether a producer can be computed in a loop around its consumers.

use crate::analysis::block::{is_ordered, loads, shifted_iters, single_store, writes};
use crate::analysis::initial::{Roles, may_be_empty};
use crate::analysis::region::{AccessKind, Span, region_inside};
use crate::analysis::scope::{consumers, producers, ranges_of, writers, writes_parameter};
use crate::ids::{BufferId, LoopId};
use crate::program::Program;
use crate::schedule::ScheduleError;
use crate::schedule::check::inline::check_inputs_stay;
use crate::schedule::destination::{Destination, Move};
use crate::schedule::find::{contains_block, position_of};
use crate::stmt::{Block, IterKind};

/// Checks that `block` can be computed at the loop `target`.
pub(in crate::schedule) fn check_compute_at(
    program: &Program,
    block: &Block,
    target: LoopId,
) -> Result<Move, ScheduleError> {
    let id = block.id;
    let destination = Destination::new(program, id, target)?;
    let node = destination.node;
    if is_ordered(block) {
        return Err(ScheduleError::OrderedBlock(id));
    }
    if writes_parameter(program, block) {
        return Err(ScheduleError::OutputBlock(id));
    }
    let store = single_store(block).ok_or(ScheduleError::NotInvertible(id))?;
    if writes(block).len() != 1 || writers(program, store.buffer).len() != 1 {
        return Err(ScheduleError::SeveralWriters(id));
    }
    let consumers = consumers(program, block);
    if consumers.is_empty() {
        return Err(ScheduleError::NoNeighbour(id));
    }
    if let Some(outside) = consumers.iter().find(|consumer| !contains_block(&node.body, consumer.id)) {
        return Err(ScheduleError::ConsumerOutside { block: id, consumer: outside.id });
    }
    consumers.iter().try_for_each(|consumer| check_initial_value(consumer, store.buffer, &destination))?;
    let consumers: Vec<_> = consumers.iter().map(|consumer| consumer.id).collect();
    check_inputs_stay(program, block, &consumers)?;
    let position = position_of(&node.body, &|other| consumers.contains(&other.id));
    for producer in producers(program, block) {
        let at = position_of(&node.body, &|other| other.id == producer.id);
        if at.is_some() && at >= position {
            return Err(ScheduleError::ProducerOutside { block: id, producer: producer.id });
        }
    }
    let ranges = ranges_of(destination.around.iter().copied());
    let region = region_inside(program, &node.body, &ranges, store.buffer, AccessKind::Read)
        .ok_or(ScheduleError::NoNeighbour(id))?;
    let shifted = shifted_iters(&store.indices).ok_or(ScheduleError::NotInvertible(id))?;
    let mut spans = Vec::new();
    for iter in &block.iters {
        let dimension = shifted.iter().position(|(var, _)| *var == Some(iter.var));
        spans.push(match (iter.kind, dimension) {
            (IterKind::Reduce | IterKind::Ordered, _) => None,
            (IterKind::Spatial, Some(dimension)) => {
                let span = &region[dimension];
                Some(Span { min: span.min.offset(-shifted[dimension].1), extent: span.extent.clone() })
            }
            (IterKind::Spatial, None) if iter.extent.is(1) => None,
            (IterKind::Spatial, None) => return Err(ScheduleError::NotInvertible(id)),
        });
    }
    Ok(destination.arrange(spans, consumers))
}

/// Checks that the operands of a consumer's initial value are made even where its reduction has no point.
fn check_initial_value(
    consumer: &Block,
    buffer: BufferId,
    destination: &Destination<'_>,
) -> Result<(), ScheduleError> {
    let Some(init) = &consumer.init else { return Ok(()) };
    if loads(init).iter().all(|access| access.buffer != buffer) {
        return Ok(());
    }
    let roles = Roles::of(consumer);
    let mut around = destination.around.iter();
    match around.find(|node| roles.reduces(node.var) && may_be_empty(&node.extent)) {
        Some(node) => Err(ScheduleError::ReductionOutside { target: node.id, block: consumer.id }),
        None => Ok(()),
    }
}

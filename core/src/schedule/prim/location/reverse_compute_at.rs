//! `reverse_compute_at`

use std::sync::Arc;

use crate::analysis::block::{covers_buffer, reads, stores, writes};
use crate::analysis::coverage::fills_region;
use crate::analysis::region::{AccessKind, Region, Span, region_inside};
use crate::analysis::scope::{blocks, loops_around, producers, ranges_of, writers};
use crate::ids::{BlockId, BufferId, LoopId};
use crate::index::Ranges;
use crate::program::Program;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::destination::{Destination, Move};
use crate::schedule::find::{contains_block, last_position_of, require_block};
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, LoopRv, Schedule, ScheduleError};
use crate::stmt::{Block, For, IterKind};

/// Moves a consumer into a loop around its producers: in each iteration it consumes just what the
/// producers have made there.
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
/// %1 = get_block "c"
/// %2 = get_loops %0
/// %3, %4 = split %2, [2, 4]
/// reverse_compute_at %1, %3
/// after
/// kernel chain(in a: f32[8], out c: f32[8]) {
///   buffer b: f32[8] global
///   for i_0 in 0..2 {
///     for i_1 in 0..4 {
///       block b(v: spatial 8 = i_0*4 + i_1) {
///         b[v] = a[v] + 1.0
///       }
///     }
///     for v_1 in 0..4 {
///       block c(v_2: spatial 8 = i_0*4 + v_1) {
///         c[v_2] = b[v_2] * 2.0
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReverseComputeAt {
    /// The consumer, which must stand in loops of its own.
    pub block: BlockRv,
    /// The loop; [`LoopId::ROOT`] does nothing.
    pub target: LoopRv,
}

impl Primitive for ReverseComputeAt {
    const NAME: &'static str = "reverse_compute_at";

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))?;
        visitor.visit(Argument::Loop(&mut self.target))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.block(self.block)?;
        let target = context.values.target_loop(self.target)?;
        if target == LoopId::ROOT {
            return Ok(Outputs::new());
        }
        let block = require_block(context.program, id)?.clone();
        let arranged = check_reverse_compute_at(context.program, &block, target)?;
        arranged.apply(context.program, &block, |body, is_producer| {
            last_position_of(body, is_producer).map_or(0, |last| last + 1)
        });
        Ok(Outputs::new())
    }
}

fn check_reverse_compute_at(program: &Program, block: &Block, target: LoopId) -> Result<Move, ScheduleError> {
    let id = block.id;
    let destination = Destination::new(program, id, target)?;
    let (node, around) = (destination.node, &destination.around);
    let own_loops = loops_around(&program.body, id).ok_or(ScheduleError::MissingBlock(id))?;
    if own_loops.iter().any(|own| around.iter().any(|node| node.id == own.id)) {
        return Err(ScheduleError::NotCovered(id));
    }
    let producers = check_producers(program, block, node, around)?;
    check_order(program, block, around.first().unwrap_or(&node))?;
    let mut spans: Vec<Option<Span>> = vec![None; block.iters.len()];
    for buffer in reads(block) {
        // An outer loop around a producer makes a part of the buffer in each of its iterations, too.
        let holds_writer = |node: &&Arc<For>| {
            blocks(&node.body).iter().any(|other| other.id != id && writes(other).contains(&buffer))
        };
        let Some(depth) = around.iter().rposition(holds_writer) else { continue };
        let (place, ranges) = (around[depth], ranges_of(around[..=depth].iter().copied()));
        check_whole_writers(program, block, place, buffer)?;
        let region = region_inside(program, &place.body, &ranges, buffer, AccessKind::Write)
            .ok_or(ScheduleError::NoNeighbour(id))?;
        if !fills_region(program, &place.body, &ranges, buffer, &region) {
            return Err(ScheduleError::NotCovered(id));
        }
        constrain(program, block, buffer, &region, &ranges, &mut spans)?;
    }
    let producers = producers.iter().map(|producer| producer.id).collect();
    Ok(destination.arrange(spans, producers))
}

/// The producers inside the loop, which must be finished there; all others must come before it.
fn check_producers<'a>(
    program: &'a Program,
    block: &Block,
    node: &For,
    around: &[&Arc<For>],
) -> Result<Vec<&'a Arc<Block>>, ScheduleError> {
    let all = producers(program, block);
    let (inside, outside): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|producer| contains_block(&node.body, producer.id));
    if inside.is_empty() {
        return Err(ScheduleError::NoNeighbour(block.id));
    }
    let order: Vec<BlockId> = blocks(&program.body).iter().map(|block| block.id).collect();
    let first_inside = blocks(&node.body)[0].id;
    let place = |id: BlockId| order.iter().position(|other| *other == id);
    if let Some(late) = outside.iter().find(|producer| place(producer.id) > place(first_inside)) {
        return Err(ScheduleError::ProducerOutside { block: block.id, producer: late.id });
    }
    for producer in inside.iter().chain(&outside) {
        let reduces = |target: &For| {
            producer
                .iters
                .iter()
                .any(|iter| iter.kind == IterKind::Reduce && iter.binding.mentions(target.var))
        };
        let is_around = |target: &&&Arc<For>| contains_block(&target.body, producer.id);
        if let Some(outer) = around.iter().filter(is_around).find(|target| reduces(target)) {
            return Err(ScheduleError::ReductionOutside { target: outer.id, block: producer.id });
        }
    }
    Ok(inside)
}

/// Checks that no statement between the outermost loop that the block comes into and its present place reads or writes the
/// block's results; other iterations of that loop come before and after.
fn check_order(program: &Program, block: &Block, node: &For) -> Result<(), ScheduleError> {
    let outputs = writes(block);
    let order = blocks(&program.body);
    let place = |id: BlockId| order.iter().position(|other| other.id == id);
    let first_inside = place(blocks(&node.body)[0].id);
    let inputs = reads(block);
    // A block before the loop reads what its "producers" will overwrite.
    if place(block.id) < first_inside {
        return Err(ScheduleError::ProducerOutside { block: block.id, producer: blocks(&node.body)[0].id });
    }
    for other in &order {
        let between = place(other.id) >= first_inside && place(other.id) < place(block.id);
        let written = writes(other);
        let read = reads(other);
        // A producer may write what this block updates in place.
        let meets = |buffer: &BufferId| {
            if inputs.contains(buffer) {
                read.contains(buffer) && !written.contains(buffer)
            } else {
                read.contains(buffer) || written.contains(buffer)
            }
        };
        if between && outputs.iter().any(meets) {
            return Err(ScheduleError::ProducerOutside { block: block.id, producer: other.id });
        }
    }
    Ok(())
}

/// Every writer of the buffer must be inside the loop, and write all of the buffer over its domain.
fn check_whole_writers(
    program: &Program,
    block: &Block,
    node: &For,
    buffer: BufferId,
) -> Result<(), ScheduleError> {
    let shape = &program.buffer(buffer).shape;
    for writer in writers(program, buffer).into_iter().filter(|writer| writer.id != block.id) {
        if !contains_block(&node.body, writer.id) {
            return Err(ScheduleError::ProducerOutside { block: block.id, producer: writer.id });
        }
        let is_whole = stores(&writer.body)
            .into_iter()
            .filter(|store| store.buffer == buffer)
            .all(|store| covers_buffer(writer, store, shape));
        if !is_whole {
            return Err(ScheduleError::NotCovered(block.id));
        }
    }
    Ok(())
}

/// Restricts the block's iterators to what it may read of a buffer inside the loop.
fn constrain(
    program: &Program,
    block: &Block,
    buffer: BufferId,
    region: &Region,
    ranges: &Ranges,
    spans: &mut [Option<Span>],
) -> Result<(), ScheduleError> {
    let shape = &program.buffer(buffer).shape;
    let accesses = crate::analysis::block::all_loads(block);
    for access in accesses.iter().filter(|access| access.buffer == buffer) {
        for ((index, span), dimension) in access.indices.iter().zip(region).zip(shape) {
            if span.min.is(0) && span.extent == *dimension {
                continue;
            }
            let shift = index.constant_part();
            let iter = index
                .offset(-shift)
                .as_var()
                .and_then(|var| block.iters.iter().position(|iter| iter.var == var))
                .ok_or(ScheduleError::NotInvertible(block.id))?;
            let domain = &block.iters[iter];
            let room = (dimension - &domain.extent).offset(-shift);
            let is_covered = shift >= 0 && room.is_provably_nonnegative(ranges);
            if domain.kind == IterKind::Reduce || !is_covered {
                return Err(ScheduleError::NotCovered(block.id));
            }
            let wanted = Span { min: span.min.offset(-shift), extent: span.extent.clone() };
            match &spans[iter] {
                Some(other) if *other != wanted => return Err(ScheduleError::NotCovered(block.id)),
                _ => spans[iter] = Some(wanted),
            }
        }
    }
    Ok(())
}

impl Schedule {
    /// Moves a consumer into a loop around its producers. See [`ReverseComputeAt`].
    ///
    /// # Errors
    /// When a producer is neither inside nor before the loop, or the elements made there do not cover the block.
    pub fn reverse_compute_at(&mut self, block: BlockRv, target: LoopRv) -> Result<(), ScheduleError> {
        self.push(ReverseComputeAt { block, target }, None).map(drop)
    }
}

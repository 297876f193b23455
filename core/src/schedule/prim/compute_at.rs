//! `compute_at`

use crate::analysis::block::{shifted_iters, single_store, writes};
use crate::analysis::region::{AccessKind, Span, region_inside};
use crate::analysis::scope::{
    consumers, loops_around_loop, producers, ranges_of, writers, writes_parameter,
};
use crate::ids::LoopId;
use crate::index::bounds::Ranges;
use crate::program::Program;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::edit::{
    check_inputs_stay, contains_block, edit_loop, insert_statement, place_block, position_of, remove_block, require_block,
    require_loop,
};
use crate::schedule::prim::{Context, Outputs, Primitive, compute_inline};
use crate::schedule::{BlockRv, LoopRv, Schedule, ScheduleError};
use crate::stmt::{Block, IterKind, LoopKind, Stmt};

/// Moves a producer into a loop around its consumers: in each iteration it computes just what the
/// consumers read there. Parts needed by several iterations are computed again in each.
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
/// %2 = get_loops %1
/// %3, %4 = split %2, [2, 4]
/// compute_at %0, %3
/// after
/// kernel chain(in a: f32[8], out c: f32[8]) {
///   buffer b: f32[8] global
///   for i_0 in 0..2 {
///     for v in 0..4 {
///       block b(v_1: spatial 8 = i_0*4 + v) {
///         b[v_1] = a[v_1] + 1.0
///       }
///     }
///     for i_1 in 0..4 {
///       block c(v_2: spatial 8 = i_0*4 + i_1) {
///         c[v_2] = b[v_2] * 2.0
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComputeAt {
    /// The producer.
    pub block: BlockRv,
    /// The loop; [`LoopId::ROOT`] does nothing, [`LoopId::INLINE`] inlines.
    pub target: LoopRv,
}

impl Primitive for ComputeAt {
    const NAME: &'static str = "compute_at";

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))?;
        visitor.visit(Argument::Loop(&mut self.target))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.block(self.block)?;
        let target = context.values.target_loop(self.target)?;
        match target {
            LoopId::ROOT => return Ok(Outputs::new()),
            LoopId::INLINE => return compute_inline::inline_block(context.program, id),
            _ => {}
        }
        let block = require_block(context.program, id)?.clone();
        let location = check_compute_at(context.program, &block, target)?;
        let placement = place_block(context.program, &block, &location.spans, location.ranges);
        remove_block(&mut context.program.body, id);
        let mut moved = Some(placement.build(&block));
        edit_loop(&mut context.program.body, target, &mut |stmt| {
            if let (Stmt::For(node), Some(moved)) = (stmt, moved.take()) {
                let body = &mut std::sync::Arc::make_mut(node).body;
                let position = position_of(body, &|other| location.consumers.contains(&other.id));
                insert_statement(body, position.unwrap_or(0), moved);
            }
        });
        Ok(Outputs::new())
    }
}

/// Where and how a block can be computed at a loop.
pub(super) struct Location {
    spans: Vec<Option<Span>>,
    ranges: Ranges,
    consumers: Vec<crate::ids::BlockId>,
}

/// Checks that `block` can be computed at the loop `target`.
pub(super) fn check_compute_at(
    program: &Program,
    block: &Block,
    target: LoopId,
) -> Result<Location, ScheduleError> {
    let id = block.id;
    let node = require_loop(program, target)?;
    let mut around = loops_around_loop(&program.body, target).ok_or(ScheduleError::MissingLoop(target))?;
    around.push(node);
    if contains_block(&node.body, id) {
        return Err(ScheduleError::AlreadyInside { block: id, target });
    }
    if let Some(vectorized) = around.iter().find(|node| node.kind == LoopKind::Vectorized) {
        return Err(ScheduleError::NotSerial(vectorized.id));
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
    let consumers: Vec<_> = consumers.iter().map(|consumer| consumer.id).collect();
    check_inputs_stay(program, block, &consumers)?;
    let position = position_of(&node.body, &|other| consumers.contains(&other.id));
    for producer in producers(program, block) {
        let at = position_of(&node.body, &|other| other.id == producer.id);
        if at.is_some() && at >= position {
            return Err(ScheduleError::ProducerOutside { block: id, producer: producer.id });
        }
    }
    let ranges = ranges_of(around);
    let region = region_inside(program, &node.body, &ranges, store.buffer, AccessKind::Read)
        .ok_or(ScheduleError::NoNeighbour(id))?;
    let shifted = shifted_iters(&store.indices).ok_or(ScheduleError::NotInvertible(id))?;
    let mut spans = Vec::new();
    for iter in &block.iters {
        let dimension = shifted.iter().position(|(var, _)| *var == Some(iter.var));
        spans.push(match (iter.kind, dimension) {
            (IterKind::Reduce, _) => None,
            (IterKind::Spatial, Some(dimension)) => {
                let span = &region[dimension];
                Some(Span { min: span.min.offset(-shifted[dimension].1), extent: span.extent.clone() })
            }
            (IterKind::Spatial, None) if iter.extent.is(1) => None,
            (IterKind::Spatial, None) => return Err(ScheduleError::NotInvertible(id)),
        });
    }
    Ok(Location { spans, ranges, consumers })
}

impl Schedule {
    /// Moves a producer into a loop around its consumers. See [`ComputeAt`].
    ///
    /// # Errors
    /// When a consumer is not inside the loop, the block writes a parameter, or its iterators cannot be solved.
    pub fn compute_at(&mut self, block: BlockRv, target: LoopRv) -> Result<(), ScheduleError> {
        self.push(ComputeAt { block, target }, None).map(drop)
    }
}

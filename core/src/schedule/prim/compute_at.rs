//! `compute_at`

use crate::analysis::block::{loads, shifted_iters, single_store, writes};
use crate::analysis::initial::{Roles, may_be_empty};
use crate::analysis::region::{AccessKind, Span, region_inside};
use crate::analysis::scope::{consumers, producers, ranges_of, writers, writes_parameter};
use crate::ids::{BufferId, LoopId};
use crate::program::Program;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::destination::{Destination, Move};
use crate::schedule::edit::{check_inputs_stay, contains_block, position_of, require_block};
use crate::schedule::prim::{Context, Outputs, Primitive, compute_inline};
use crate::schedule::{BlockRv, LoopRv, Schedule, ScheduleError};
use crate::stmt::{Block, IterKind};

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
        let arranged = check_compute_at(context.program, &block, target)?;
        arranged.carry_out(context.program, &block, |body, is_consumer| {
            position_of(body, is_consumer).unwrap_or(0)
        });
        Ok(Outputs::new())
    }
}

/// Checks that `block` can be computed at the loop `target`.
pub(in crate::schedule) fn check_compute_at(
    program: &Program,
    block: &Block,
    target: LoopId,
) -> Result<Move, ScheduleError> {
    let id = block.id;
    let destination = Destination::new(program, id, target)?;
    let node = destination.node;
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
            (IterKind::Reduce, _) => None,
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

/// What a consumer's initial value is made from must be there even where its reduction has no point.
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

impl Schedule {
    /// Moves a producer into a loop around its consumers. See [`ComputeAt`].
    ///
    /// # Errors
    /// When a consumer is not inside the loop, the block writes a parameter, or its iterators cannot be solved.
    pub fn compute_at(&mut self, block: BlockRv, target: LoopRv) -> Result<(), ScheduleError> {
        self.push(ComputeAt { block, target }, None).map(drop)
    }
}

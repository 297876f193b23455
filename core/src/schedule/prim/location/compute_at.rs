//! `compute_at`

use crate::ids::LoopId;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::check::location::check_compute_at;
use crate::schedule::edit::inline_block;
use crate::schedule::find::{position_of, require_block};
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, LoopRv, Schedule, ScheduleError};

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
    const KEEPS_ORDER: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))?;
        visitor.visit(Argument::Loop(&mut self.target))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.block(self.block)?;
        let target = context.values.target_loop(self.target)?;
        match target {
            LoopId::ROOT => return Ok(Outputs::new()),
            LoopId::INLINE => {
                inline_block(context.program, id)?;
                return Ok(Outputs::new());
            }
            _ => {}
        }
        let block = require_block(context.program, id)?.clone();
        let arranged = check_compute_at(context.program, &block, target)?;
        arranged
            .apply(context.program, &block, |body, is_consumer| position_of(body, is_consumer).unwrap_or(0));
        Ok(Outputs::new())
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

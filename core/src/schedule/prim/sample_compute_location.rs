//! `sample_compute_location`

use crate::analysis::scope::{consumers, loops_around};
use crate::ids::LoopId;
use crate::program::Program;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::edit::require_block;
use crate::schedule::prim::compute_at::check_compute_at;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, Decision, LoopRv, Schedule, ScheduleError, Value};
use crate::stmt::Block;

/// Draws a loop at which a block can be computed: one of those around all of its consumers, or none.
///
/// The result stands for a loop; [`LoopId::ROOT`] means "stay". A given decision that is no longer
/// possible falls back to the nearest possible location further out, then to staying.
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
/// %1 = sample_compute_location %0 !decision @0
/// compute_at %0, %1
/// after
/// kernel chain(in a: f32[8], out c: f32[8]) {
///   buffer b: f32[8] global
///   for i in 0..8 {
///     block b(v: spatial 8 = i) {
///       b[v] = a[v] + 1.0
///     }
///     block c(v_1: spatial 8 = i) {
///       c[v_1] = b[v_1] * 2.0
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampleComputeLocation {
    /// The block.
    pub block: BlockRv,
}

impl Primitive for SampleComputeLocation {
    const NAME: &'static str = "sample_compute_location";
    const PURE: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let block = require_block(context.program, context.values.block(self.block)?)?;
        let candidates = compute_locations(context.program, block);
        let location = match context.decision {
            Some(Decision::Location(wanted)) => {
                let nearest = candidates.iter().rev().find(|(number, _)| number <= wanted);
                nearest.copied().unwrap_or((-1, LoopId::ROOT))
            }
            Some(_) => return Err(ScheduleError::BadDecision("sample_compute_location takes `@number`")),
            None => candidates[context.rng.below(candidates.len())],
        };
        *context.decision = Some(Decision::Location(location.0));
        Ok(Outputs::from_slice(&[Value::Loop(location.1)]))
    }
}

/// The possible locations with their numbers: staying (-1), then loops around all consumers, outermost first.
pub(crate) fn compute_locations(program: &Program, block: &Block) -> Vec<(i64, LoopId)> {
    let mut locations = vec![(-1, LoopId::ROOT)];
    let paths: Vec<Vec<LoopId>> = consumers(program, block)
        .iter()
        .filter_map(|consumer| loops_around(&program.body, consumer.id))
        .map(|path| path.into_iter().map(|node| node.id).collect())
        .collect();
    let Some((first, others)) = paths.split_first() else { return locations };
    for (number, target) in first.iter().enumerate() {
        if !others.iter().all(|path| path.get(number) == Some(target)) {
            break;
        }
        if check_compute_at(program, block, *target).is_ok() {
            locations.push((number as i64, *target));
        }
    }
    locations
}

impl Schedule {
    /// Draws a loop at which a block can be computed. See [`SampleComputeLocation`].
    ///
    /// # Errors
    /// When the block is gone.
    pub fn sample_compute_location(&mut self, block: BlockRv) -> Result<LoopRv, ScheduleError> {
        self.push_one(SampleComputeLocation { block }).map(LoopRv)
    }
}

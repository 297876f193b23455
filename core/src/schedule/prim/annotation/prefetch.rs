//! `prefetch`

use crate::annotation::{MAX_PREFETCH, PREFETCH, PREFETCH_SIBLINGS};
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::edit::edit_loop_annotations;
use crate::schedule::find::require_loop;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::rv::{IntArgument, PrefetchMode};
use crate::schedule::{LoopRv, Schedule, ScheduleError};
use crate::stmt::LoopKind;

/// Prefetches the cache lines that loads will touch.
///
/// With a distance, in iterations, a loop prefetches for its own loads: processors follow long streams by themselves, but
/// not many short ones, nor far jumps from one to the next. With `"siblings"`, a loop prefetches, a few lines in each
/// iteration, for the loads of its sibling loops in the next iteration of the loop around: memory then reads while a loop
/// only writes. Only runs of adjacent elements of tensors are prefetched for siblings. Nothing is loaded, so that the last
/// iterations may prefetch beyond a buffer.
///
/// ```text
/// before
/// kernel copy(in a: f32[8, 64], out b: f32[8, 64]) {
///   for i in 0..8 {
///     for j in 0..64 {
///       block b(vi: spatial 8 = i, vj: spatial 64 = j) {
///         b[vi, vj] = a[vi, vj]
///       }
///     }
///   }
/// }
/// apply
/// %0 = get_block "b"
/// %1, %2 = get_loops %0
/// prefetch %1, 2
/// after
/// kernel copy(in a: f32[8, 64], out b: f32[8, 64]) {
///   @prefetch 2
///   for i in 0..8 {
///     for j in 0..64 {
///       block b(vi: spatial 8 = i, vj: spatial 64 = j) {
///         b[vi, vj] = a[vi, vj]
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prefetch {
    /// The loop, which is serial.
    pub target: LoopRv,
    /// The distance, from 1 to [`MAX_PREFETCH`] iterations, or `"siblings"`.
    pub mode: PrefetchMode,
}

impl Primitive for Prefetch {
    const NAME: &'static str = "prefetch";
    const KEEPS_ORDER: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Loop(&mut self.target))?;
        visitor.visit(Argument::Prefetch(&mut self.mode))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.target_loop(self.target)?;
        if require_loop(context.program, id)?.kind != LoopKind::Serial {
            return Err(ScheduleError::NotSerial(id));
        }
        let distance = match self.mode {
            PrefetchMode::Ahead(distance) => Some(context.values.int(distance)?),
            PrefetchMode::Siblings => None,
        };
        if let Some(distance) = distance.filter(|distance| !(1..=MAX_PREFETCH).contains(distance)) {
            return Err(ScheduleError::BadDistance(distance));
        }
        edit_loop_annotations(&mut context.program.body, id, &mut |annotations| match distance {
            Some(distance) => PREFETCH.set(annotations, distance),
            None => PREFETCH_SIBLINGS.set(annotations, true),
        });
        Ok(Outputs::new())
    }
}

impl Schedule {
    /// Prefetches a loop's own loads, `distance` of its iterations ahead. See [`Prefetch`].
    ///
    /// # Errors
    /// When the loop is not serial, or the distance is not between 1 and [`MAX_PREFETCH`].
    pub fn prefetch(
        &mut self,
        target: LoopRv,
        distance: impl Into<IntArgument>,
    ) -> Result<(), ScheduleError> {
        self.push(Prefetch { target, mode: PrefetchMode::Ahead(distance.into()) }, None).map(drop)
    }

    /// Prefetches in a loop for the loads of its sibling loops. See [`Prefetch`].
    ///
    /// # Errors
    /// When the loop is not serial.
    pub fn prefetch_for_siblings(&mut self, target: LoopRv) -> Result<(), ScheduleError> {
        self.push(Prefetch { target, mode: PrefetchMode::Siblings }, None).map(drop)
    }
}

//! `prefetch`

use crate::lower::{MAX_PREFETCH, PREFETCH};
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::edit::{edit_loop_annotations, require_loop};
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::rv::IntArgument;
use crate::schedule::{LoopRv, Schedule, ScheduleError};
use crate::stmt::{Annotation, LoopKind};

/// Asks for what a loop will read so many iterations ahead to be brought into the caches meanwhile. Machines follow
/// streams by themselves; what they do not see coming are many short ones, and far jumps from one to the next.
/// Whatever is asked for, nothing is read: the last iterations may ask for what lies behind a buffer.
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
#[derive(Clone, Debug, PartialEq)]
pub struct Prefetch {
    /// The loop, which is serial.
    pub target: LoopRv,
    /// How many of its iterations ahead, from 1.
    pub distance: IntArgument,
}

impl Default for Prefetch {
    fn default() -> Self {
        Prefetch { target: LoopRv::default(), distance: 1.into() }
    }
}

impl Primitive for Prefetch {
    const NAME: &'static str = "prefetch";

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Loop(&mut self.target))?;
        visitor.visit(Argument::Int(&mut self.distance))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.target_loop(self.target)?;
        if require_loop(context.program, id)?.kind != LoopKind::Serial {
            return Err(ScheduleError::NotSerial(id));
        }
        let distance = context.values.int(self.distance)?;
        if !(1..=MAX_PREFETCH).contains(&distance) {
            return Err(ScheduleError::BadDistance(distance));
        }
        edit_loop_annotations(&mut context.program.body, id, &mut |annotations| {
            annotations.insert(PREFETCH.into(), Annotation::Int(distance));
        });
        Ok(Outputs::new())
    }
}

impl Schedule {
    /// Asks for what a loop will read to be brought into the caches ahead. See [`Prefetch`].
    ///
    /// # Errors
    /// When the loop is not serial, or the distance is not between 1 and [`MAX_PREFETCH`].
    pub fn prefetch(&mut self, target: LoopRv, distance: impl Into<IntArgument>) -> Result<(), ScheduleError> {
        self.push(Prefetch { target, distance: distance.into() }, None).map(drop)
    }
}

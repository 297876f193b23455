//! `prefetch_beside`

use crate::lower::PREFETCH_BESIDE;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::edit::{edit_loop_annotations, require_loop};
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{LoopRv, Schedule, ScheduleError};
use crate::stmt::{Annotation, LoopKind};

/// While a loop runs, asks for what the loops beside it will read in the next iteration of the loop around them to
/// be brought into the caches, a few lines in each iteration. A loop that only writes lets memory read meanwhile.
/// What is asked for are runs of elements next to each other that are read from tensors. Nothing is read, and
/// the last iteration may ask for what lies behind a tensor.
///
/// ```text
/// before
/// kernel scaled(in a: f32[8, 64], out b: f32[8, 64]) {
///   buffer s: f32[8] global
///   for i in 0..8 {
///     for k in 0..64 {
///       block s(vi: spatial 8 = i, vk: reduce 64 = k) {
///         init {
///           s[vi] = 0.0
///         }
///         s[vi] = s[vi] + a[vi, vk]
///       }
///     }
///     for j in 0..64 {
///       block b(vi_1: spatial 8 = i, vj: spatial 64 = j) {
///         b[vi_1, vj] = s[vi_1]
///       }
///     }
///   }
/// }
/// apply
/// %0 = get_block "b"
/// %1, %2 = get_loops %0
/// prefetch_beside %2
/// after
/// kernel scaled(in a: f32[8, 64], out b: f32[8, 64]) {
///   buffer s: f32[8] global
///   for i in 0..8 {
///     for k in 0..64 {
///       block s(vi: spatial 8 = i, vk: reduce 64 = k) {
///         init {
///           s[vi] = 0.0
///         }
///         s[vi] = s[vi] + a[vi, vk]
///       }
///     }
///     @prefetch_beside 1
///     for j in 0..64 {
///       block b(vi_1: spatial 8 = i, vj: spatial 64 = j) {
///         b[vi_1, vj] = s[vi_1]
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PrefetchBeside {
    /// The loop, which is serial.
    pub target: LoopRv,
}

impl Primitive for PrefetchBeside {
    const NAME: &'static str = "prefetch_beside";

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Loop(&mut self.target))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.target_loop(self.target)?;
        if require_loop(context.program, id)?.kind != LoopKind::Serial {
            return Err(ScheduleError::NotSerial(id));
        }
        edit_loop_annotations(&mut context.program.body, id, &mut |annotations| {
            annotations.insert(PREFETCH_BESIDE.into(), Annotation::Int(1));
        });
        Ok(Outputs::new())
    }
}

impl Schedule {
    /// While a loop runs, asks for what the loops beside it will read next. See [`PrefetchBeside`].
    ///
    /// # Errors
    /// When the loop is not serial.
    pub fn prefetch_beside(&mut self, target: LoopRv) -> Result<(), ScheduleError> {
        self.push(PrefetchBeside { target }, None).map(drop)
    }
}

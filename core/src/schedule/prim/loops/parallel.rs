//! `parallel`

use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::check::independence::check_independent;
use crate::schedule::edit::set_kind;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{LoopRv, Schedule, ScheduleError};
use crate::stmt::LoopKind;

/// Distributes the iterations of a loop over threads. They must be independent.
///
/// ```text
/// before
/// kernel copy(in a: f32[12], out b: f32[12]) {
///   for i in 0..12 {
///     block b(v: spatial 12 = i) {
///       b[v] = a[v]
///     }
///   }
/// }
/// apply
/// %0 = get_block "b"
/// %1 = get_loops %0
/// parallel %1
/// after
/// kernel copy(in a: f32[12], out b: f32[12]) {
///   parallel for i in 0..12 {
///     block b(v: spatial 12 = i) {
///       b[v] = a[v]
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parallel {
    /// The loop.
    pub target: LoopRv,
}

impl Primitive for Parallel {
    const NAME: &'static str = "parallel";
    const KEEPS_ORDER: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Loop(&mut self.target))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.target_loop(self.target)?;
        check_independent(context.program, id)?;
        set_kind(context.program, id, LoopKind::Parallel);
        Ok(Outputs::new())
    }
}

impl Schedule {
    /// Distributes the iterations of a loop over threads. See [`Parallel`].
    ///
    /// # Errors
    /// When the iterations are not independent, or the loop is not serial.
    pub fn parallel(&mut self, target: LoopRv) -> Result<(), ScheduleError> {
        self.push(Parallel { target }, None).map(drop)
    }
}

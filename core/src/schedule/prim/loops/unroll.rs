//! `unroll`

use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::edit::set_kind;
use crate::schedule::find::require_loop;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{LoopRv, Schedule, ScheduleError};
use crate::stmt::LoopKind;

/// Writes out the iterations of a loop one after the other. Their number must be constant.
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
/// unroll %1
/// after
/// kernel copy(in a: f32[12], out b: f32[12]) {
///   unrolled for i in 0..12 {
///     block b(v: spatial 12 = i) {
///       b[v] = a[v]
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Unroll {
    /// The loop.
    pub target: LoopRv,
}

impl Primitive for Unroll {
    const NAME: &'static str = "unroll";
    const KEEPS_ORDER: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Loop(&mut self.target))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.target_loop(self.target)?;
        let target = require_loop(context.program, id)?;
        if target.kind != LoopKind::Serial {
            return Err(ScheduleError::NotSerial(id));
        }
        if target.extent.as_constant().is_none() {
            return Err(ScheduleError::SymbolicExtent(id));
        }
        set_kind(context.program, id, LoopKind::Unrolled);
        Ok(Outputs::new())
    }
}

impl Schedule {
    /// Writes out the iterations of a loop. See [`Unroll`].
    ///
    /// # Errors
    /// When the loop is not serial or its extent is symbolic.
    pub fn unroll(&mut self, target: LoopRv) -> Result<(), ScheduleError> {
        self.push(Unroll { target }, None).map(drop)
    }
}

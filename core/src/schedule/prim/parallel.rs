//! `parallel`

use crate::analysis::block::writes;
use crate::analysis::scope::{blocks, is_private_to};
use crate::ids::LoopId;
use crate::program::Program;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::edit::{edit_loop, require_loop};
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{LoopRv, Schedule, ScheduleError};
use crate::stmt::{IterKind, LoopKind, Stmt};

/// Spreads the iterations of a loop over threads. They must be independent.
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

/// Checks that a serial loop's iterations neither share a reduction nor write the same elements of a
/// buffer that lives outside the loop. One iteration shares nothing.
pub(super) fn check_independent(program: &Program, id: LoopId) -> Result<(), ScheduleError> {
    let target = require_loop(program, id)?;
    if target.kind != LoopKind::Serial {
        return Err(ScheduleError::NotSerial(id));
    }
    if target.extent.as_constant().is_some_and(|extent| extent <= 1) {
        return Ok(());
    }
    for block in blocks(&target.body) {
        let depends = |kind: IterKind| {
            block.iters.iter().any(|iter| iter.kind == kind && iter.binding.mentions(target.var))
        };
        if depends(IterKind::Reduce) {
            return Err(ScheduleError::ReductionLoop { target: id, block: block.id });
        }
        if !depends(IterKind::Spatial) {
            let shared = writes(block).into_iter().find(|buffer| !is_private_to(program, id, *buffer));
            if let Some(buffer) = shared {
                return Err(ScheduleError::SharedWrite { target: id, block: block.id, buffer });
            }
        }
    }
    Ok(())
}

/// Sets how a loop is executed.
pub(super) fn set_kind(program: &mut Program, id: LoopId, kind: LoopKind) {
    edit_loop(&mut program.body, id, &mut |stmt| {
        if let Stmt::For(node) = stmt {
            std::sync::Arc::make_mut(node).kind = kind;
        }
    });
}

impl Schedule {
    /// Spreads the iterations of a loop over threads. See [`Parallel`].
    ///
    /// # Errors
    /// When the iterations are not independent, or the loop is not serial.
    pub fn parallel(&mut self, target: LoopRv) -> Result<(), ScheduleError> {
        self.push(Parallel { target }, None).map(drop)
    }
}

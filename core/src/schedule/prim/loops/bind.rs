//! `bind`

use crate::analysis::scope::loops_around_loop;
use crate::ids::LoopId;
use crate::program::Program;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::check::independence::{bound_loops, check_combined, check_independent};
use crate::schedule::edit::set_kind;
use crate::schedule::find::require_loop;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{LoopRv, Schedule, ScheduleError};
use crate::stmt::{LoopKind, Symbol};
use crate::thread_axis::ThreadAxis;

/// Binds a loop to an axis of a GPU's threads: each iteration is one of them. The iterations must be independent, and a nest,
/// which is one grid, gives an axis one extent.
///
/// A reduction across threads is made of independent parts by [`rfactor`](crate::schedule::prim::RFactor). The innermost loop of a
/// reduction, around its block alone, can be bound to `thread_x`: the threads combine their values, in an order of their own, and all of
/// them have the result. A machine without such threads refuses the loop when it is lowered.
///
/// ```text
/// before
/// kernel copy(in a: f32[64, 32], out b: f32[64, 32]) {
///   for i in 0..64 {
///     for j in 0..32 {
///       block b(vi: spatial 64 = i, vj: spatial 32 = j) {
///         b[vi, vj] = a[vi, vj]
///       }
///     }
///   }
/// }
/// apply
/// %0 = get_block "b"
/// %1, %2 = get_loops %0
/// bind %1, "block_x"
/// bind %2, "thread_x"
/// after
/// kernel copy(in a: f32[64, 32], out b: f32[64, 32]) {
///   bound block_x for i in 0..64 {
///     bound thread_x for j in 0..32 {
///       block b(vi: spatial 64 = i, vj: spatial 32 = j) {
///         b[vi, vj] = a[vi, vj]
///       }
///     }
///   }
/// }
/// ```
///
/// # Errors
/// [`UnknownAxis`](ScheduleError::UnknownAxis): no axis has the name. [`NotSerial`](ScheduleError::NotSerial),
/// [`ReductionLoop`](ScheduleError::ReductionLoop), [`SharedWrite`](ScheduleError::SharedWrite): as
/// [`Parallel`](crate::schedule::prim::Parallel). [`AxisTaken`](ScheduleError::AxisTaken): a loop around or inside is
/// bound to it. [`AxisExtent`](ScheduleError::AxisExtent): another loop of the nest gives it another extent.
#[derive(Clone, Debug, PartialEq)]
pub struct Bind {
    /// The loop.
    pub target: LoopRv,
    /// The name of the axis: `block_x`, `thread_x`, `virtual_x`, and the same with `y` and `z`.
    pub axis: Symbol,
}

impl Default for Bind {
    fn default() -> Self {
        Bind { target: LoopRv::default(), axis: ThreadAxis::ThreadX.text().into() }
    }
}

impl Primitive for Bind {
    const NAME: &'static str = "bind";
    const KEEPS_ORDER: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Loop(&mut self.target))?;
        visitor.visit(Argument::Text(&mut self.axis))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.target_loop(self.target)?;
        let axis = ThreadAxis::named(&self.axis).ok_or(ScheduleError::UnknownAxis)?;
        match axis {
            ThreadAxis::ThreadX => check_combined(context.program, id)?,
            _ => check_independent(context.program, id)?,
        }
        check_free(context.program, id, axis)?;
        set_kind(context.program, id, LoopKind::Bound(axis));
        Ok(Outputs::new())
    }
}

/// Checks that a loop can have an axis, for all that the others in its nest have.
fn check_free(program: &Program, id: LoopId, axis: ThreadAxis) -> Result<(), ScheduleError> {
    let target = require_loop(program, id)?;
    let around = loops_around_loop(&program.body, id).ok_or(ScheduleError::MissingLoop(id))?;
    let inside = bound_loops(&target.body);
    if let Some(other) = around.iter().copied().chain(inside).find(|node| node.kind == LoopKind::Bound(axis))
    {
        return Err(ScheduleError::AxisTaken { target: id, other: other.id });
    }
    let outermost = around.first().map_or(target, |outermost| *outermost);
    let others = bound_loops(&outermost.body);
    let other =
        others.into_iter().find(|node| node.kind == LoopKind::Bound(axis) && node.extent != target.extent);
    match other {
        Some(other) if axis.is_of_grid() => Err(ScheduleError::AxisExtent { target: id, other: other.id }),
        _ => Ok(()),
    }
}

impl Schedule {
    /// Binds a loop to an axis of a GPU's threads. See [`Bind`].
    ///
    /// # Errors
    /// When the iterations are not independent, the loop is not serial, or the axis has another loop or another extent in
    /// this nest.
    pub fn bind(&mut self, target: LoopRv, axis: ThreadAxis) -> Result<(), ScheduleError> {
        self.push(Bind { target, axis: axis.text().into() }, None).map(drop)
    }
}

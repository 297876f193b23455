//! `vectorize`

use crate::analysis::block::{is_update, writes};
use crate::analysis::scope::{blocks, is_private_to};
use crate::ids::LoopId;
use crate::program::Program;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::check::independence::check_independent;
use crate::schedule::edit::set_kind;
use crate::schedule::find::require_loop;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{LoopRv, Schedule, ScheduleError};
use crate::stmt::{IterKind, LoopKind, Stmt};

/// Executes the iterations of a loop as one vector operation, one lane each. Their number must be constant and at most
/// [`Vectorize::MAX_LANES`]. They must be independent, or all update the same elements by one reduction without an
/// initial value (`decompose_reduction` takes it out), which then combines the lanes as a tree.
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
/// %2, %3 = split %1, [3, 4]
/// vectorize %3
/// after
/// kernel copy(in a: f32[12], out b: f32[12]) {
///   for i_0 in 0..3 {
///     vectorized for i_1 in 0..4 {
///       block b(v: spatial 12 = i_0*4 + i_1) {
///         b[v] = a[v]
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vectorize {
    /// The loop.
    pub target: LoopRv,
}

impl Vectorize {
    /// The largest extent of a vectorized loop. Wider than any register: backends take vectors apart.
    pub const MAX_LANES: i64 = 256;
}

impl Primitive for Vectorize {
    const NAME: &'static str = "vectorize";
    const KEEPS_ORDER: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Loop(&mut self.target))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.target_loop(self.target)?;
        let extent = require_loop(context.program, id)?.extent.as_constant();
        match extent {
            None => return Err(ScheduleError::SymbolicExtent(id)),
            Some(extent) if extent > Self::MAX_LANES => return Err(ScheduleError::BadFactors(id)),
            Some(_) => {}
        }
        if !is_one_update(context.program, id)? {
            check_independent(context.program, id)?;
        }
        check_no_private_buffers(context.program, id)?;
        set_kind(context.program, id, LoopKind::Vectorized);
        Ok(Outputs::new())
    }
}

/// Whether the iterations of a serial loop do nothing but combine values with the same elements.
fn is_one_update(program: &Program, id: LoopId) -> Result<bool, ScheduleError> {
    let target = require_loop(program, id)?;
    let Stmt::Block(block) = &target.body else { return Ok(false) };
    let moves_element =
        block.iters.iter().any(|iter| iter.kind != IterKind::Reduce && iter.binding.mentions(target.var));
    Ok(target.kind == LoopKind::Serial && is_update(block) && !moves_element)
}

/// A buffer that lives inside the loop would have to exist once per lane.
fn check_no_private_buffers(program: &Program, id: LoopId) -> Result<(), ScheduleError> {
    for block in blocks(&require_loop(program, id)?.body) {
        if let Some(buffer) = writes(block).into_iter().find(|buffer| is_private_to(program, id, *buffer)) {
            return Err(ScheduleError::SharedWrite { target: id, block: block.id, buffer });
        }
    }
    Ok(())
}

impl Schedule {
    /// Executes the iterations of a loop at once. See [`Vectorize`].
    ///
    /// # Errors
    /// When the iterations are not independent, or the loop is not serial, short and of constant extent.
    pub fn vectorize(&mut self, target: LoopRv) -> Result<(), ScheduleError> {
        self.push(Vectorize { target }, None).map(drop)
    }
}

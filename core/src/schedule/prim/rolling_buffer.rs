//! `rolling_buffer`

use crate::analysis::block::{single_store, writes};
use crate::analysis::region::{AccessKind, Region, Span, bound_accesses};
use crate::analysis::rolling::{Users, rolled_loop, rolls_over, skip_guard};
use crate::analysis::scope::{consumers, ranges_of, writers, writes_parameter};
use crate::ids::{BufferId, LoopId};
use crate::index::Index;
use crate::program::{Program, Window};
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::edit::{contains_block, edit_block, require_block, require_loop};
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, LoopRv, Schedule, ScheduleError};
use crate::stmt::{Block, For, Guard, LoopKind};
use crate::visit::find_loop;

/// Lets a producer inside a loop make, in each iteration but the first, only what earlier iterations have not made, and
/// keeps no more of its buffer than an iteration reads. The iterations depend on each other then, so that the loop stays
/// serial.
///
/// The producer is computed at the loop, or at one inside it, and so are all of its consumers, after it. The regions of
/// successive iterations overlap: along one dimension each is further on than the one before by no more than a constant, and of
/// a constant size above that, and otherwise they are the same. From then on, whatever would let an iteration miss what
/// an earlier one has made is refused. A loop of one iteration is left as it is.
///
/// A producer may roll over several loops inside each other, along rows and columns of tiles: it then makes what no iteration of
/// any of them has made, and as much is kept as the outermost one reads in an iteration.
///
/// ```text
/// before
/// kernel blur(in a: f32[10], out c: f32[8]) {
///   buffer b: f32[10] global
///   for i in 0..10 {
///     block b(v: spatial 10 = i) {
///       b[v] = a[v] * 0.5
///     }
///   }
///   for i in 0..8 {
///     block c(v: spatial 8 = i) {
///       c[v] = b[v] + b[v + 1] + b[v + 2]
///     }
///   }
/// }
/// apply
/// %0 = get_block "b"
/// %1 = get_block "c"
/// %2 = get_loops %1
/// compute_at %0, %2
/// rolling_buffer %0, %2
/// after
/// kernel blur(in a: f32[10], out c: f32[8]) {
///   buffer b: f32[10] global rolls 0 3
///   for i in 0..8 {
///     for v in 0..3 {
///       block b(v_1: spatial 10 = i + v) where min(1, i)*2 - v < 1 {
///         b[v_1] = a[v_1] * 0.5
///       }
///     }
///     block c(v_2: spatial 8 = i) {
///       c[v_2] = b[v_2] + b[v_2 + 1] + b[v_2 + 2]
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RollingBuffer {
    /// The producer.
    pub block: BlockRv,
    /// The loop around it and its consumers.
    pub target: LoopRv,
}

impl Primitive for RollingBuffer {
    const NAME: &'static str = "rolling_buffer";

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))?;
        visitor.visit(Argument::Loop(&mut self.target))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.block(self.block)?;
        let target = context.values.target_loop(self.target)?;
        let program = &*context.program;
        let block = require_block(program, id)?;
        let buffer = check_place(program, block, require_loop(program, target)?)?;
        if require_loop(program, target)?.extent.as_constant().is_some_and(|extent| extent <= 1) {
            return Ok(Outputs::new());
        }
        let (window, guard) = roll(program, block, target, buffer)?;
        let window = kept(program, buffer, window, target);
        let mut rolled = program.clone();
        rolled.keep_window(buffer, window);
        edit_block(&mut rolled.body, id, &mut |block| block.guards.push(guard.clone()));
        rolled_loop(&rolled, buffer, window).map_err(|fault| ScheduleError::Rolling { buffer, fault })?;
        *context.program = rolled;
        Ok(Outputs::new())
    }
}

/// Checks that the block alone makes an intermediate, inside the loop, and that only blocks there read it.
fn check_place(program: &Program, block: &Block, target: &For) -> Result<BufferId, ScheduleError> {
    let id = block.id;
    if writes_parameter(program, block) {
        return Err(ScheduleError::OutputBlock(id));
    }
    let ([buffer], Some(_)) = (&writes(block)[..], single_store(block)) else {
        return Err(ScheduleError::NotInvertible(id));
    };
    if writers(program, *buffer).len() != 1 {
        return Err(ScheduleError::SeveralWriters(id));
    }
    if rolls_over(program, block, *buffer, target.var) {
        return Err(ScheduleError::AlreadyRolling { block: id, buffer: *buffer });
    }
    if target.kind != LoopKind::Serial {
        return Err(ScheduleError::NotSerial(target.id));
    }
    let consumers = consumers(program, block);
    let consumer = consumers.first().ok_or(ScheduleError::NoNeighbour(id))?;
    if !contains_block(&target.body, id) {
        return Err(ScheduleError::ProducerOutside { block: consumer.id, producer: id });
    }
    match consumers.iter().find(|consumer| !contains_block(&target.body, consumer.id)) {
        Some(outside) => Err(ScheduleError::ConsumerOutside { block: id, consumer: outside.id }),
        None => Ok(*buffer),
    }
}

/// The window of a buffer that comes to roll over one more loop: that of the outermost one.
fn kept(program: &Program, buffer: BufferId, window: Window, target: LoopId) -> Window {
    let Some(before) = program.window(buffer) else { return window };
    let outermost = rolled_loop(program, buffer, before).ok().flatten();
    let is_inside = outermost.and_then(|outermost| find_loop(&program.body, outermost));
    let is_inside = is_inside.is_some_and(|outermost| find_loop(&outermost.body, target).is_some());
    if is_inside { before } else { window }
}

/// What is to be kept, and what the block is to leave out.
fn roll(
    program: &Program,
    block: &Block,
    target: LoopId,
    buffer: BufferId,
) -> Result<(Window, Guard), ScheduleError> {
    let no_overlap = ScheduleError::NoOverlap { target, buffer };
    let users = Users::of(program, buffer).ok_or(no_overlap)?;
    let depth = users.common.iter().position(|node| node.id == target).ok_or(no_overlap)?;
    let home = users.common.len() - 1;
    let written = users.region(program, home, AccessKind::Write).ok_or(no_overlap)?;
    let var = users.common[depth].var;
    let (axis, overlap) = overlap_of(&written, |index| users.step_of(index, &Index::var(var))).ok_or(no_overlap)?;
    let touched = users.touched(program, depth).ok_or(no_overlap)?;
    let length = touched[axis].extent.as_constant().ok_or(no_overlap)?;
    let [element] = &bound_accesses(block, buffer, AccessKind::Write)[..] else {
        return Err(ScheduleError::NotInvertible(block.id));
    };
    let ranges = ranges_of(users.common.iter().copied());
    let guard = skip_guard(var, overlap, (&element[axis], &written[axis]), &ranges);
    // Of an empty region nothing is kept, and of one that is larger than a window may be not enough.
    Ok((Window { axis, length: length.clamp(1, Window::MAX_LENGTH) }, guard))
}

/// The only dimension along which a region moves from one iteration to the next, or any if it stays, and how much the regions
/// of both share; `None` when they do not. `step` tells by how much an index grows.
fn overlap_of(region: &Region, step: impl Fn(&Index) -> Option<i64>) -> Option<(usize, i64)> {
    let moves = |span: &Span| step(&span.min) != Some(0);
    let mut moving = (0..region.len()).filter(|axis| moves(&region[*axis]));
    let is_constant = |axis: &usize| region[*axis].extent.as_constant().is_some();
    let axis = moving.next().or_else(|| (0..region.len()).find(is_constant))?;
    let span = &region[axis];
    let overlap = span.extent.as_constant()? - step(&span.min).filter(|step| *step >= 0)?;
    (overlap > 0 && moving.next().is_none()).then_some((axis, overlap))
}

impl Schedule {
    /// Lets a producer leave out, in each iteration of a loop, what earlier ones have made. See [`RollingBuffer`].
    ///
    /// # Errors
    /// When the block and its consumers are not inside the loop, in this order, or the regions of its iterations do not
    /// overlap in a constant part.
    pub fn rolling_buffer(&mut self, block: BlockRv, target: LoopRv) -> Result<(), ScheduleError> {
        self.push(RollingBuffer { block, target }, None).map(drop)
    }
}

//! All steps that compute the rows of a result in one kernel: each block of threads computes whole rows, so that sums and the steps that
//! read them pass their values on without a second kernel.
//!
//! ```text
//! softmax of rows:  most[i] = max(x[i, :])   sum[i] = Σ exp(x[i, :] - most[i])   y[i, j] = exp(x[i, j] - most[i]) / sum[i]
//! bound block_x for i { most, by all threads   sum, by all threads   y[i, :], by all threads }
//! ```

mod group;

use tilewright_core::analysis::block::single_store;
use tilewright_core::ids::VarId;
use tilewright_core::index::Index;
use tilewright_core::index::map::IndexMap;
use tilewright_core::program::Scope;
use tilewright_core::schedule::{BlockRv, LoopRv, Schedule, ScheduleError};
use tilewright_core::thread_axis::{ThreadAxis, WARP};

use self::group::{Group, group_of};
use super::by_element::fuse_all;
use super::in_block::{bind_innermost, factor};
use super::postproc::extent;
use crate::space::rules::add_rfactor::partition_loops;
use crate::space::rules::block::block_of;

/// The most threads of a block without a search.
const USUAL_THREADS: i64 = 256;

/// Values of a row for each thread, without a search: loads of several values overlap.
const USUAL_VALUES: u64 = 4;

/// The most iterations of a thread that are written out: as many as it keeps values of a row, which would be in memory otherwise.
pub(super) const MAX_UNROLLED: i64 = 64;

/// Where the values of steps that are no reductions are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Values {
    /// In registers of the threads that compute them, and alone use them.
    Registers,
    /// In memory that the threads share.
    Shared,
}

/// [`rows_in_block`] with the usual number of threads and values in registers.
pub(super) fn rows_in_registers(schedule: &mut Schedule, block: BlockRv) -> Result<bool, ScheduleError> {
    rows_as_usual(schedule, block, Values::Registers)
}

/// [`rows_in_block`] with the usual number of threads and values in memory that they share.
pub(super) fn rows_in_shared_memory(schedule: &mut Schedule, block: BlockRv) -> Result<bool, ScheduleError> {
    rows_as_usual(schedule, block, Values::Shared)
}

fn rows_as_usual(schedule: &mut Schedule, block: BlockRv, values: Values) -> Result<bool, ScheduleError> {
    match longest_row(schedule, block)? {
        Some(longest) => rows_in_block(schedule, block, usual_threads(longest), values),
        None => Ok(false),
    }
}

/// Whole warps, with a few values for each thread.
fn usual_threads(values: i64) -> i64 {
    let threads = (values.max(1) as u64).div_ceil(USUAL_VALUES).next_power_of_two();
    (threads as i64).clamp(WARP, USUAL_THREADS)
}

/// The most values of a row that a step of the block's group combines; `None` where the block is not the last step of a group.
pub(super) fn longest_row(schedule: &Schedule, block: BlockRv) -> Result<Option<i64>, ScheduleError> {
    let last = block_of(schedule, block)?;
    let group = group_of(schedule.program(), &last);
    Ok(group
        .and_then(|group| group.steps.iter().filter(|step| step.is_reduction).map(|step| step.values).max()))
}

/// Computes the rows of a block, with all steps that serve it alone, in blocks of some threads. The answer is whether the block is the
/// last step of a group, and each step needs the elements of one row alone. A warp that has a row for itself needs no memory that threads
/// share, so that several of them form a block.
pub(super) fn rows_in_block(
    schedule: &mut Schedule,
    block: BlockRv,
    threads: i64,
    values: Values,
) -> Result<bool, ScheduleError> {
    let last = block_of(schedule, block)?;
    let Some(group) = group_of(schedule.program(), &last) else { return Ok(false) };
    let stages = factored(schedule, &group, threads)?;
    let rows = bind_last(schedule, block, &group, threads)?;
    let is_alone = threads <= WARP && values == Values::Registers;
    let parts =
        schedule.split(rows, &[None, Some(if is_alone { warps(extent(schedule, rows)?) } else { 1 })])?;
    for stage in stages.iter().rev() {
        schedule.compute_at(stage.block, parts[1])?;
        let loops = schedule.get_loops(stage.block)?;
        let (spatial, reduce) = partition_loops(schedule, stage.block, &loops[2..])?;
        match (stage.kind, &spatial[..]) {
            (StageKind::Sum, []) => bind_innermost(schedule, stage.block)?,
            (StageKind::Partial, [own]) => {
                schedule.bind(*own, ThreadAxis::ThreadX)?;
                unroll_few(schedule, &reduce)?;
            }
            (StageKind::Elements, [_, ..]) => {
                let elements = fuse_all(schedule, &spatial)?;
                bind_elements(schedule, elements, threads)?;
                keep(schedule, stage.block, threads, values)?;
            }
            // One value for a row, such as the inverse of its length: each thread computes it for itself.
            (StageKind::Elements, []) => schedule.set_scope(stage.block, 0, Scope::Local)?,
            _ => return Ok(false),
        }
    }
    schedule.bind(parts[0], ThreadAxis::BlockX)?;
    if extent(schedule, parts[1])? > 1 {
        schedule.bind(parts[1], ThreadAxis::ThreadY)?;
    }
    Ok(true)
}

/// How many warps form a block, each with rows of its own.
fn warps(rows: i64) -> i64 {
    [8, 4, 2].into_iter().find(|warps| rows % warps == 0).unwrap_or(1)
}

/// Places the values of a step. In registers, the last dimension is divided as its elements are divided among threads.
fn keep(schedule: &mut Schedule, block: BlockRv, threads: i64, values: Values) -> Result<(), ScheduleError> {
    if values == Values::Shared {
        return schedule.set_scope(block, 0, Scope::Shared);
    }
    let found = block_of(schedule, block)?;
    let refusal = ScheduleError::NotInvertible(found.id);
    let rank = single_store(&found).ok_or(refusal)?.indices.len() as u32;
    let dimension = |number: u32| Index::var(VarId(number));
    let last = dimension(rank.checked_sub(1).ok_or(refusal)?);
    let divided = [last.floor_div(threads), last.modulo(threads)];
    let map = IndexMap::new(rank, (0..rank - 1).map(dimension).chain(divided).collect()).ok_or(refusal)?;
    schedule.set_scope(block, 0, Scope::Local)?;
    schedule.transform_layout(block, "write", 0, map)
}

/// One part of a step.
struct Stage {
    block: BlockRv,
    kind: StageKind,
}

#[derive(Clone, Copy)]
enum StageKind {
    /// Each thread combines some of the values.
    Partial,
    /// The threads combine their results, which all of them have afterwards.
    Sum,
    /// Each thread computes some elements of the row.
    Elements,
}

/// The steps of a group in parts that threads can share, in the order in which they are computed.
fn factored(schedule: &mut Schedule, group: &Group, threads: i64) -> Result<Vec<Stage>, ScheduleError> {
    let mut stages = Vec::new();
    for step in &group.steps {
        let block = schedule.get_block(&step.name)?;
        if !step.is_reduction {
            stages.push(Stage { block, kind: StageKind::Elements });
            continue;
        }
        let (partial, sum) = factor(schedule, block, threads)?;
        schedule.set_scope(sum, 0, Scope::Local)?;
        stages.push(Stage { block: partial, kind: StageKind::Partial });
        stages.push(Stage { block: sum, kind: StageKind::Sum });
    }
    Ok(stages)
}

/// Divides the elements of each row of the last step among threads. The answer is the loop over rows.
fn bind_last(
    schedule: &mut Schedule,
    block: BlockRv,
    group: &Group,
    threads: i64,
) -> Result<LoopRv, ScheduleError> {
    let found = block_of(schedule, block)?;
    let loops = schedule.get_loops(block)?;
    let (mut rows, mut columns) = (Vec::new(), Vec::new());
    for target in loops {
        let variable = super::postproc::variable(schedule, target)?;
        let chooses_row =
            found.iters.iter().any(|iter| group.rows.contains(&iter.var) && iter.binding.mentions(variable));
        if chooses_row { rows.push(target) } else { columns.push(target) }
    }
    schedule.reorder(&[rows.as_slice(), columns.as_slice()].concat())?;
    let elements = match &columns[..] {
        [] => None,
        columns => Some(fuse_all(schedule, columns)?),
    };
    let rows = match (&rows[..], elements) {
        ([], Some(elements)) => schedule.add_unit_loop(elements)?,
        (rows, _) => fuse_all(schedule, rows)?,
    };
    if let Some(elements) = elements {
        bind_elements(schedule, elements, threads)?;
    }
    Ok(rows)
}

/// Divides a loop over the elements of a row among threads, neighbours beside each other.
fn bind_elements(schedule: &mut Schedule, elements: LoopRv, threads: i64) -> Result<(), ScheduleError> {
    let parts = schedule.split(elements, &[None, Some(threads)])?;
    schedule.bind(parts[1], ThreadAxis::ThreadX)?;
    unroll_few(schedule, &parts[..1])
}

/// Writes out a loop of few iterations, whose loads then overlap, and whose elements can be registers.
fn unroll_few(schedule: &mut Schedule, loops: &[LoopRv]) -> Result<(), ScheduleError> {
    for target in loops {
        if (2..=MAX_UNROLLED).contains(&extent(schedule, *target)?) {
            schedule.unroll(*target)?;
        }
    }
    Ok(())
}

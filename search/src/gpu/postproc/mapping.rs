//! Loops divided among workers as a task mapping says.

use tilewright_core::schedule::{LoopRv, Schedule, ScheduleError};
use tilewright_core::task_mapping::{Distribution, TaskMapping, TaskMappingError};

use super::extent;

/// The loops over the tasks of one worker and those over workers.
pub(super) struct Mapped {
    /// The loops over workers, the slowest first.
    pub(super) workers: Vec<LoopRv>,
    /// The loops over the tasks of one worker, outermost first.
    pub(super) tasks: Vec<LoopRv>,
}

/// Divides a box of loops, which follow each other, as a mapping says: the loops over workers are outside of those over the tasks of
/// one. A mapping of a larger box is guarded part by part, so that what one worker does at once needs no condition inside.
pub(super) fn divide(
    schedule: &mut Schedule,
    loops: &[LoopRv],
    mapping: &TaskMapping,
) -> Result<Mapped, ScheduleError> {
    if loops.len() != mapping.dimensions() {
        return Err(ScheduleError::BadLoopList);
    }
    let parts = mapping.parts();
    let mut of_dimension = Vec::new();
    for (dimension, target) in loops.iter().enumerate() {
        let mut rest = *target;
        let mut own = Vec::new();
        for part in parts[1..].iter().rev() {
            let cut = schedule.split(rest, &[None, Some(part.shape[dimension])])?;
            own.push(cut[1]);
            rest = cut[0];
        }
        // Each worker of the outermost part has a number, also where the box ends before its tasks.
        let count = parts[0].shape[dimension];
        let is_whole = extent(schedule, rest).is_ok_and(|extent| extent == count);
        own.push(if is_whole { rest } else { schedule.split(rest, &[Some(count)])?[0] });
        own.reverse();
        of_dimension.push(own);
    }
    let (mut workers, mut tasks) = (Vec::new(), Vec::new());
    for (number, part) in parts.iter().enumerate() {
        let own = part.order().into_iter().map(|dimension| of_dimension[dimension][number]);
        match part.distribution {
            Distribution::Spatial => workers.extend(own),
            Distribution::Repeat => tasks.extend(own),
        }
    }
    schedule.reorder(&[&workers[..], &tasks].concat())?;
    Ok(Mapped { workers, tasks })
}

/// The refusal of a mapping that cannot be made.
pub(super) fn refused(_: TaskMappingError) -> ScheduleError {
    ScheduleError::BadDecision("numbers of workers and tasks that form a task mapping")
}

//! Readers and writers of a buffer.

use std::sync::Arc;

use crate::analysis::block::{loads, reads, writes};
use crate::analysis::coverage::{is_wholly_written, visits_domain};
use crate::analysis::scope::{blocks, producers, writers};
use crate::ids::{BlockId, BufferId};
use crate::program::{Program, Scope};
use crate::schedule::ScheduleError;
use crate::schedule::find::{require_block, root_position, statements};
use crate::stmt::Block;

/// The scope of a name in a trace.
pub(in crate::schedule) fn scope_named(name: &str) -> Result<Scope, ScheduleError> {
    [Scope::Global, Scope::Local, Scope::Shared, Scope::Fragment]
        .into_iter()
        .find(|scope| scope.text() == name)
        .ok_or(ScheduleError::BadDecision("the scope is `global`, `local`, `shared` or `fragment`"))
}

/// Checks that a buffer which a block reads, and does not write, is finished before the block's nest; the answer is the
/// position of the nest.
pub(in crate::schedule) fn check_finished(
    program: &Program,
    block: &Block,
    source: BufferId,
) -> Result<usize, ScheduleError> {
    let position = root_position(program, block.id)?;
    let unfinished = producers(program, block).into_iter().find(|producer| {
        writes(producer).contains(&source)
            && root_position(program, producer.id).is_ok_and(|other| other >= position)
    });
    if let Some(producer) = unfinished {
        return Err(ScheduleError::ProducerOutside { block: block.id, producer: producer.id });
    }
    if writes(block).contains(&source) {
        return Err(ScheduleError::UpdatesInPlace { block: block.id, buffer: source });
    }
    Ok(position)
}

/// Checks that all that a block reads of a buffer over its whole domain is there, also where its loops leave a part of the
/// domain out.
pub(in crate::schedule) fn check_written(
    program: &Program,
    block: &Block,
    source: BufferId,
) -> Result<(), ScheduleError> {
    if is_wholly_written(program, source) || visits_domain(program, block) {
        return Ok(());
    }
    Err(ScheduleError::PartlyWritten { block: block.id, buffer: source })
}

/// The buffer that a block reads or writes with a number.
pub(in crate::schedule) fn accessed_buffer(
    block: &Block,
    access: &str,
    number: i64,
) -> Result<BufferId, ScheduleError> {
    let buffers = match access {
        "read" => reads(block),
        "write" => writes(block),
        _ => return Err(ScheduleError::BadDecision("the access is `read` or `write`")),
    };
    let missing = ScheduleError::NoSuchAccess { block: block.id, number };
    let position = usize::try_from(number).map_err(|_| missing)?;
    buffers.get(position).copied().ok_or(missing)
}

/// As [`accessed_buffer`], for a primitive that changes the layout of the buffer, which a parameter's caller has chosen.
pub(in crate::schedule) fn accessed_intermediate(
    program: &Program,
    block: BlockId,
    access: &str,
    number: i64,
) -> Result<BufferId, ScheduleError> {
    let buffer = accessed_buffer(require_block(program, block)?, access, number)?;
    match program.access(buffer) {
        Some(_) => Err(ScheduleError::ParameterBuffer { block, buffer }),
        None => Ok(buffer),
    }
}

/// Checks that a block is the only writer of a buffer, which starts anew there and which no other block of its nest
/// reads, and that its loops visit all elements; the answer is the position of the nest.
pub(in crate::schedule) fn check_sole_writer(
    program: &Program,
    block: &Block,
    target: BufferId,
) -> Result<usize, ScheduleError> {
    let updates = loads(&block.body).iter().any(|access| access.buffer == target);
    if updates && block.init.is_none() {
        return Err(ScheduleError::NotReduction(block.id));
    }
    if writers(program, target).len() != 1 {
        return Err(ScheduleError::SeveralWriters(block.id));
    }
    let position = root_position(program, block.id)?;
    let reads_too = |other: &&Arc<Block>| other.id != block.id && reads(other).contains(&target);
    match blocks(&statements(&program.body)[position]).into_iter().find(reads_too) {
        Some(other) => Err(ScheduleError::UsedElsewhere { buffer: target, by: other.id }),
        None if !visits_domain(program, block) => {
            Err(ScheduleError::NotFilled { block: block.id, buffer: target })
        }
        None => Ok(position),
    }
}

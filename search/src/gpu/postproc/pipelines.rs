//! Pipelines of copies into shared memory and the products that need them.

use tilewright_core::analysis::block::writes;
use tilewright_core::analysis::scope::{blocks, loops_around};
use tilewright_core::annotation::{COPY_STAGES, PIPELINE_ASYNC};
use tilewright_core::ids::BlockId;
use tilewright_core::program::{Program, Scope};
use tilewright_core::schedule::{LoopRv, Schedule, ScheduleError};
use tilewright_core::stmt::{Stmt, Symbol};
use tilewright_core::visit::find_loop;

/// Pipelines the loop around each block that asks for it and the copies that it reads: the copies are asynchronous, and ahead by all
/// stages but one.
pub(super) fn pipeline_copies(schedule: &mut Schedule) -> Result<(), ScheduleError> {
    let found = blocks(&schedule.program().body);
    let asking = found.into_iter().filter_map(|block| {
        Some((block.name.clone(), COPY_STAGES.get(&block.annotations).filter(|stages| *stages > 1)?))
    });
    let asking: Vec<(Symbol, i64)> = asking.collect();
    for (name, stages) in asking {
        let block = schedule.get_block(&name)?;
        let id = schedule.values().block(block)?;
        let loops = schedule.get_loops(block)?;
        let Some((target, copies)) = pipelined_loop(schedule, id, &loops)? else { continue };
        let statements: Vec<i64> =
            copies.iter().map(|is_copy| if *is_copy { 0 } else { stages - 1 }).collect();
        let order: Vec<i64> = (0..statements.len() as i64).collect();
        schedule.software_pipeline(target, &statements, &order)?;
        schedule.annotate(target, PIPELINE_ASYNC, vec![0])?;
    }
    Ok(())
}

/// The innermost loop around a block that holds copies into shared memory beside it, and which of its statements they are. `None`
/// where there are no copies, and for a single iteration.
fn pipelined_loop(
    schedule: &Schedule,
    block: BlockId,
    loops: &[LoopRv],
) -> Result<Option<(LoopRv, Vec<bool>)>, ScheduleError> {
    let program = schedule.program();
    let around = loops_around(&program.body, block).unwrap_or_default();
    for (target, node) in loops.iter().zip(around).rev() {
        let Stmt::Seq(statements) = &node.body else { continue };
        let copies: Vec<bool> = statements.iter().map(|stmt| copies_to_shared(program, stmt)).collect();
        if !copies.contains(&true) {
            continue;
        }
        let id = schedule.values().target_loop(*target)?;
        let node = find_loop(&program.body, id).ok_or(ScheduleError::MissingLoop(id))?;
        return Ok((!node.extent.is(1)).then_some((*target, copies)));
    }
    Ok(None)
}

/// Whether all blocks in a statement store to shared memory.
fn copies_to_shared(program: &Program, stmt: &Stmt) -> bool {
    let is_shared = |buffer: &_| program.buffer(*buffer).scope == Scope::Shared;
    blocks(stmt).into_iter().all(|block| writes(block).iter().all(is_shared))
}

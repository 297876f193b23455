//! Look-ups that both preconditions and edits need: loops and blocks by identity, and statements of a program.

use std::sync::Arc;

use crate::analysis::scope::loops_around;
use crate::ids::{BlockId, LoopId};
use crate::program::Program;
use crate::schedule::ScheduleError;
use crate::stmt::{Block, For, Stmt};
use crate::visit::{find_block, find_loop, for_each_block};

/// The loop of an identity.
pub(in crate::schedule) fn require_loop(program: &Program, id: LoopId) -> Result<&Arc<For>, ScheduleError> {
    find_loop(&program.body, id).ok_or(ScheduleError::MissingLoop(id))
}

/// The block of an identity.
pub(in crate::schedule) fn require_block(
    program: &Program,
    id: BlockId,
) -> Result<&Arc<Block>, ScheduleError> {
    find_block(&program.body, id).ok_or(ScheduleError::MissingBlock(id))
}

/// Whether a block is inside a statement.
pub(in crate::schedule) fn contains_block(stmt: &Stmt, id: BlockId) -> bool {
    find_block(stmt, id).is_some()
}

/// The statements of a body, in order.
pub(in crate::schedule) fn statements(body: &Stmt) -> &[Stmt] {
    match body {
        Stmt::Seq(stmts) => stmts,
        single => std::slice::from_ref(single),
    }
}

/// The position of the first statement of a body in which some block satisfies the predicate.
pub(in crate::schedule) fn position_of(body: &Stmt, wanted: &dyn Fn(&Block) -> bool) -> Option<usize> {
    statements(body).iter().position(|stmt| any_block(stmt, wanted))
}

/// The position of the last statement of a body in which some block satisfies the predicate.
pub(in crate::schedule) fn last_position_of(body: &Stmt, wanted: &dyn Fn(&Block) -> bool) -> Option<usize> {
    statements(body).iter().rposition(|stmt| any_block(stmt, wanted))
}

fn any_block(stmt: &Stmt, wanted: &dyn Fn(&Block) -> bool) -> bool {
    let mut found = false;
    for_each_block(stmt, &mut |block| found |= wanted(block));
    found
}

/// The loops around a block that hold nothing besides, outermost first.
pub(in crate::schedule) fn single_block_chain(
    program: &Program,
    id: BlockId,
) -> Result<Vec<&Arc<For>>, ScheduleError> {
    let around = loops_around(&program.body, id).ok_or(ScheduleError::MissingBlock(id))?;
    let holds_one = |node: &&&Arc<For>| matches!(node.body, Stmt::For(_) | Stmt::Block(_));
    let length = around.iter().rev().take_while(holds_one).count();
    Ok(around[around.len() - length..].to_vec())
}

/// The statement of the whole program that contains a block: the outermost nest it stands in.
pub(in crate::schedule) fn root_position(program: &Program, id: BlockId) -> Result<usize, ScheduleError> {
    position_of(&program.body, &|block| block.id == id).ok_or(ScheduleError::MissingBlock(id))
}

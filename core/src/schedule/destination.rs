//! Loops that blocks are moved into, where their producers or consumers are.

use std::sync::Arc;

use crate::analysis::region::Span;
use crate::analysis::scope::{loops_around_loop, ranges_of};
use crate::ids::{BlockId, LoopId};
use crate::index::Ranges;
use crate::program::Program;
use crate::schedule::ScheduleError;
use crate::schedule::edit::{edit_loop, insert_statement, place_block, remove_block};
use crate::schedule::find::{contains_block, require_loop};
use crate::stmt::{Block, For, LoopKind, Stmt};

/// A loop that a block is to be moved into.
pub(super) struct Destination<'p> {
    /// The loop.
    pub node: &'p Arc<For>,
    /// The loops around the new place, outermost first, `node` last.
    pub around: Vec<&'p Arc<For>>,
}

impl<'p> Destination<'p> {
    /// The loop `target`, which must exist, not contain the block yet, and not be inside a vectorized loop.
    pub(super) fn new(program: &'p Program, block: BlockId, target: LoopId) -> Result<Self, ScheduleError> {
        let node = require_loop(program, target)?;
        let mut around =
            loops_around_loop(&program.body, target).ok_or(ScheduleError::MissingLoop(target))?;
        around.push(node);
        if contains_block(&node.body, block) {
            return Err(ScheduleError::AlreadyInside { block, target });
        }
        if let Some(vectorized) = around.iter().find(|node| node.kind == LoopKind::Vectorized) {
            return Err(ScheduleError::NotSerial(vectorized.id));
        }
        Ok(Destination { node, around })
    }

    /// The move of a block there, with iterators over these spans, next to these neighbours.
    pub(super) fn arrange(self, spans: Vec<Option<Span>>, neighbours: Vec<BlockId>) -> Move {
        Move { target: self.node.id, spans, ranges: ranges_of(self.around), neighbours }
    }
}

/// Chooses a place among the statements of a loop's body, given what tells whether a block is a neighbour.
pub(super) type Position = fn(&Stmt, &dyn Fn(&Block) -> bool) -> usize;

/// How a block is moved into a loop.
pub(super) struct Move {
    target: LoopId,
    /// The part of each iterator's domain that is computed there; `None` for all of it.
    spans: Vec<Option<Span>>,
    /// The loops around the new place.
    ranges: Ranges,
    /// The producers or consumers that are there.
    neighbours: Vec<BlockId>,
}

impl Move {
    /// Moves the block to the position that `position` chooses.
    pub(super) fn apply(self, program: &mut Program, block: &Block, position: Position) {
        let placement = place_block(program, block, &self.spans, self.ranges);
        remove_block(&mut program.body, block.id);
        let mut moved = Some(placement.build(block));
        edit_loop(&mut program.body, self.target, &mut |stmt| {
            if let (Stmt::For(node), Some(moved)) = (stmt, moved.take()) {
                let body = &mut Arc::make_mut(node).body;
                let position = position(body, &|other| self.neighbours.contains(&other.id));
                insert_statement(body, position, moved);
            }
        });
    }
}

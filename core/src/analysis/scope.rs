//! Where blocks stand: the loops around them, who produces what they read, who consumes what they write.

use std::sync::Arc;

use crate::analysis::block::{reads, writes};
use crate::ids::{BlockId, BufferId, LoopId, VarId};
use crate::index::Ranges;
use crate::program::Program;
use crate::stmt::{Block, For, Stmt};
use crate::visit::{find_loop, for_each_block};

/// Every block inside a statement, in program order.
pub fn blocks(stmt: &Stmt) -> Vec<&Arc<Block>> {
    let mut found = Vec::with_capacity(USUAL_NUMBER);
    for_each_block(stmt, &mut |block| found.push(block));
    found
}

/// Room for as many loops or blocks as most programs have, so that lists of them are allocated once.
const USUAL_NUMBER: usize = 12;

/// The loops around a block, outermost first; `None` when the block is not inside `stmt`.
pub fn loops_around(stmt: &Stmt, block: BlockId) -> Option<Vec<&Arc<For>>> {
    fn search<'a>(mut stmt: &'a Stmt, block: BlockId, path: &mut Vec<&'a Arc<For>>) -> bool {
        let around = path.len();
        while let Stmt::For(node) = stmt {
            path.push(node);
            stmt = &node.body;
        }
        let is_inside = match stmt {
            Stmt::Block(node) => node.id == block,
            _ => stmt.each_child().any(|child| search(child, block, path)),
        };
        if !is_inside {
            path.truncate(around);
        }
        is_inside
    }
    let mut path = Vec::with_capacity(USUAL_NUMBER);
    search(stmt, block, &mut path).then_some(path)
}

/// The loops around a loop, outermost first, without itself; `None` when the loop is not inside `stmt`.
pub fn loops_around_loop(stmt: &Stmt, target: LoopId) -> Option<Vec<&Arc<For>>> {
    fn search<'a>(stmt: &'a Stmt, target: LoopId, path: &mut Vec<&'a Arc<For>>) -> bool {
        if let Stmt::For(node) = stmt {
            if node.id == target {
                return true;
            }
            path.push(node);
            if search(&node.body, target, path) {
                return true;
            }
            path.pop();
            return false;
        }
        stmt.each_child().any(|child| search(child, target, path))
    }
    let mut path = Vec::with_capacity(USUAL_NUMBER);
    search(stmt, target, &mut path).then_some(path)
}

/// The ranges of loop variables.
pub fn ranges_of<'a>(loops: impl IntoIterator<Item = &'a Arc<For>>) -> Ranges {
    let mut ranges = Ranges::new();
    loops.into_iter().for_each(|node| ranges.insert_loop(node));
    ranges
}

/// The blocks that write a buffer, in program order.
pub fn writers(program: &Program, buffer: BufferId) -> Vec<&Arc<Block>> {
    blocks(&program.body).into_iter().filter(|block| writes(block).contains(&buffer)).collect()
}

/// The blocks that read a buffer, in program order.
pub fn readers(program: &Program, buffer: BufferId) -> Vec<&Arc<Block>> {
    blocks(&program.body).into_iter().filter(|block| reads(block).contains(&buffer)).collect()
}

/// The other blocks that write what `block` reads, in program order.
pub fn producers<'a>(program: &'a Program, block: &Block) -> Vec<&'a Arc<Block>> {
    let inputs = reads(block);
    let makes_input = |other: &Block| writes(other).iter().any(|buffer| inputs.contains(buffer));
    blocks(&program.body).into_iter().filter(|other| other.id != block.id && makes_input(other)).collect()
}

/// The other blocks that read what `block` writes, in program order.
pub fn consumers<'a>(program: &'a Program, block: &Block) -> Vec<&'a Arc<Block>> {
    let outputs = writes(block);
    let takes_output = |other: &Block| reads(other).iter().any(|buffer| outputs.contains(buffer));
    blocks(&program.body).into_iter().filter(|other| other.id != block.id && takes_output(other)).collect()
}

/// Whether the block writes a parameter.
pub fn writes_parameter(program: &Program, block: &Block) -> bool {
    writes(block).iter().any(|buffer| program.access(*buffer).is_some())
}

/// Whether every access to a buffer is inside a loop.
pub fn is_private_to(program: &Program, target: LoopId, buffer: BufferId) -> bool {
    if program.access(buffer).is_some() {
        return false;
    }
    let Some(inside) = find_loop(&program.body, target) else { return false };
    let touches = |stmt: &Stmt| {
        blocks(stmt)
            .iter()
            .filter(|block| writes(block).contains(&buffer) || reads(block).contains(&buffer))
            .count()
    };
    touches(&inside.body) == touches(&program.body)
}

/// The loop variables that a block's iterators of one kind depend on.
pub fn binding_vars(block: &Block, kind: crate::stmt::IterKind) -> Vec<VarId> {
    let mut vars = Vec::new();
    for iter in block.iters.iter().filter(|iter| iter.kind == kind) {
        iter.binding.for_each_var(&mut |var| {
            if !vars.contains(&var) {
                vars.push(var);
            }
        });
    }
    vars
}

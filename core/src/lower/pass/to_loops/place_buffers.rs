//! Allocates each intermediate around the innermost statements that contain all its accesses.
//!
//! The allocation goes into a loop only when each iteration stores every element before it reads it, so that no value is lost
//! between iterations ([`loop_carried`](crate::analysis::loop_carried) decides that). It never goes into a vectorized loop,
//! each lane of which would need a buffer of its own. Inside a parallel loop, a buffer belongs to one thread.

use std::sync::Arc;

use crate::access::is_allocated;
use crate::analysis::access::{accesses, loads_from};
use crate::analysis::loop_carried::carries_nothing;
use crate::ids::BufferId;
use crate::index::Ranges;
use crate::lower::{LowerError, LowerOptions};
use crate::program::{Program, Scope};
use crate::stmt::{Alloc, For, If, LoopKind, Stmt};
use crate::target::TargetKind;
use crate::thread_axis::ThreadAxis;

/// Allocates every intermediate that the body uses, unless it is already.
pub(in crate::lower) fn place_buffers(
    program: &mut Program,
    options: &LowerOptions,
) -> Result<(), LowerError> {
    let intermediates: Vec<BufferId> =
        program.buffers().map(|(id, _)| id).filter(|id| program.access(*id).is_none()).collect();
    let mut body = std::mem::replace(&mut program.body, Stmt::nothing());
    for buffer in intermediates {
        if accesses(&body, buffer) && !is_allocated(&body, buffer) {
            let depth = match options.kind {
                TargetKind::Cpu => private_depth(program, &loops_around(&body, buffer), buffer),
                TargetKind::Gpu => depth_for_scope(program, &loops_around(&body, buffer), buffer)?,
            };
            place(&mut body, buffer, depth);
        }
    }
    program.body = body;
    Ok(())
}

/// The loops around all accesses to a buffer, outermost first.
fn loops_around(body: &Stmt, buffer: BufferId) -> Vec<&For> {
    let mut loops = Vec::new();
    let mut current = Some(body);
    while let Some(stmt) = current {
        current = match stmt {
            Stmt::For(node) if node.kind != LoopKind::Vectorized => {
                loops.push(&**node);
                Some(&node.body)
            }
            Stmt::Seq(stmts) => {
                let mut accessing = stmts.iter().filter(|child| accesses(child, buffer));
                accessing.next().filter(|_| accessing.next().is_none())
            }
            Stmt::If(node) if is_in_one_branch(node, buffer) => [Some(&node.then), node.otherwise.as_ref()]
                .into_iter()
                .flatten()
                .find(|branch| accesses(branch, buffer)),
            Stmt::Alloc(node) => Some(&node.body),
            Stmt::For(_)
            | Stmt::If(_)
            | Stmt::Store(_)
            | Stmt::Block(_)
            | Stmt::Intrinsic(_)
            | Stmt::Barrier
            | Stmt::Copies(_)
            | Stmt::Shuffle(_) => None,
        };
    }
    loops
}

/// The number of loops around all accesses to a buffer inside of which its allocation can stand.
fn private_depth(program: &Program, loops: &[&For], buffer: BufferId) -> usize {
    // A buffer that is private to an iteration of a loop is private to an iteration of every loop around it.
    (0..loops.len())
        .rev()
        .find(|depth| {
            carries_nothing(
                program,
                loops[*depth],
                &Ranges::from_loops(loops[..*depth].iter().copied()),
                buffer,
            )
        })
        .map_or(0, |depth| depth + 1)
}

/// As [`private_depth`], where the scope says whose memory it is: that of all blocks outside of all loops, that of one block
/// inside the loops over blocks and outside of those over threads.
fn depth_for_scope(program: &Program, loops: &[&For], buffer: BufferId) -> Result<usize, LowerError> {
    let scope = program.buffer(buffer).scope;
    let is_bound_to = |is_of: fn(ThreadAxis) -> bool| move |node: &&For| matches!(node.kind, LoopKind::Bound(axis) if is_of(axis));
    let outside_threads = loops.iter().position(is_bound_to(ThreadAxis::is_of_block)).unwrap_or(loops.len());
    let inside_blocks =
        loops.iter().rposition(is_bound_to(ThreadAxis::is_of_blocks)).map_or(0, |last| last + 1);
    let depth = match scope {
        Scope::Global | Scope::Streamed => return Ok(0),
        Scope::Shared => private_depth(program, loops, buffer).min(outside_threads),
        Scope::Local | Scope::Fragment => private_depth(program, loops, buffer),
    };
    if depth < inside_blocks {
        return Err(LowerError::Scope {
            buffer: program.buffer(buffer).name.to_string(),
            scope: scope.text(),
            problem: "blocks of threads pass values to each other through it; make it `global`",
        });
    }
    Ok(depth)
}

/// Puts the allocation around the accesses to the buffer inside `stmt`, inside at most `depth` loops. `stmt` has such accesses.
fn place(stmt: &mut Stmt, buffer: BufferId, depth: usize) {
    match stmt {
        Stmt::Seq(stmts) => {
            let (Some(first), Some(last)) = (
                stmts.iter().position(|child| accesses(child, buffer)),
                stmts.iter().rposition(|child| accesses(child, buffer)),
            ) else {
                return;
            };
            let stmts = Arc::make_mut(stmts);
            if first == last {
                return place(&mut stmts[first], buffer, depth);
            }
            let body = Stmt::seq(stmts.drain(first..=last));
            stmts.insert(first, allocate(buffer, body));
            if stmts.len() == 1 {
                *stmt = stmts.remove(0);
            }
        }
        Stmt::For(node) if depth > 0 => place(&mut Arc::make_mut(node).body, buffer, depth - 1),
        Stmt::If(node) if is_in_one_branch(node, buffer) => {
            let node = Arc::make_mut(node);
            let is_in_then = accesses(&node.then, buffer);
            if let Some(branch) = if is_in_then { Some(&mut node.then) } else { node.otherwise.as_mut() } {
                place(branch, buffer, depth);
            }
        }
        Stmt::Alloc(node) => place(&mut Arc::make_mut(node).body, buffer, depth),
        Stmt::For(_)
        | Stmt::If(_)
        | Stmt::Store(_)
        | Stmt::Block(_)
        | Stmt::Intrinsic(_)
        | Stmt::Barrier
        | Stmt::Copies(_)
        | Stmt::Shuffle(_) => {
            let body = std::mem::replace(stmt, Stmt::nothing());
            *stmt = allocate(buffer, body);
        }
    }
}

fn allocate(buffer: BufferId, body: Stmt) -> Stmt {
    Stmt::Alloc(Arc::new(Alloc { buffer, body }))
}

/// Whether one branch of a conditional has all of its accesses to a buffer.
fn is_in_one_branch(node: &If, buffer: BufferId) -> bool {
    let in_otherwise = node.otherwise.as_ref().is_some_and(|stmt| accesses(stmt, buffer));
    !loads_from(&node.condition, buffer) && accesses(&node.then, buffer) != in_otherwise
}

//! Asynchronous copies of a pipelined loop: which stores can be asynchronous, and where a thread waits for them.
//!
//! ```text
//! @software_pipeline_async_stages [0]
//! @software_pipeline_stage [0, 2]
//! for i in 0..8 { s[…] = a[4·i …]; c[4·i …] = s[…] }
//!
//! async s[0, …] = a[0 …]  commit_copies()
//! async s[1, …] = a[4 …]  commit_copies()
//! for i in 0..6 { wait_copies(1)  async s[(i + 2)%3, …] = a[4·i + 8 …]  commit_copies()  c[4·i …] = s[i%3, …] }
//! wait_copies(1)  c[24 …] = s[0, …]  wait_copies(0)  c[28 …] = s[1, …]
//! ```
//!
//! The copies that are started together form a group, one for each step of the pipeline. A statement in a later stage needs the group of
//! its iteration, so that a thread waits, at the beginning of a step, until only the groups behind that one are under way. A barrier
//! behind the wait, where other threads need the elements, is on their way to the next copies as well.

use std::sync::Arc;

use crate::analysis::access::accesses;
use crate::analysis::block::stores;
use crate::analysis::pipeline::{Plan, Statement};
use crate::flat::moved::moved_element;
use crate::ids::BufferId;
use crate::program::{Program, Scope};
use crate::stmt::{Copies, Stmt, Store, StoreKind};

/// The asynchronous copies of a pipeline.
#[derive(Default)]
pub(super) struct AsyncCopies {
    /// The stages of the statements that start copies.
    copying: Vec<i64>,
    /// For each statement that needs copied elements, its stage and the last stage in which they are copied.
    needing: Vec<(i64, i64)>,
    /// The number of the last statement of a step that starts copies, in the order of execution.
    last: Option<usize>,
}

impl AsyncCopies {
    /// Makes the stores of asynchronous stages asynchronous that only move elements into shared memory.
    pub(super) fn find(program: &Program, plan: &Plan, statements: &mut [Statement]) -> Self {
        let stored: Vec<BufferId> = statements
            .iter()
            .flat_map(|statement| stores(&statement.body).into_iter().map(|store| store.buffer))
            .collect();
        let mut copied: Vec<(BufferId, i64)> = Vec::new();
        let mut found = AsyncCopies::default();
        for statement in statements.iter_mut().filter(|statement| plan.is_async(statement.number)) {
            let mut own = Vec::new();
            make_async(program, &stored, &mut statement.body, &mut own);
            if own.is_empty() {
                continue;
            }
            let stage = plan.stages[statement.number];
            found.copying.push(stage);
            found.last =
                found.last.into_iter().chain([statement.number]).max_by_key(|number| plan.order[*number]);
            copied.extend(own.into_iter().map(|buffer| (buffer, stage)));
        }
        for statement in &*statements {
            let stage = plan.stages[statement.number];
            let needed = copied
                .iter()
                .filter(|(buffer, copied_at)| *copied_at < stage && accesses(&statement.body, *buffer))
                .map(|(_, stage)| *stage)
                .max();
            found.needing.extend(needed.map(|needed| (stage, needed)));
        }
        found
    }

    /// The end of a group, where a statement is the last one of a step to start copies.
    pub(super) fn commit_behind(&self, statement: usize) -> Option<Stmt> {
        (self.last == Some(statement)).then_some(Stmt::Copies(Copies::Commit))
    }

    /// The wait at the beginning of a step in which all stages are executed.
    pub(super) fn wait_in_steady_step(&self) -> Option<Stmt> {
        self.needing.iter().map(|(stage, needed)| stage - needed - 1).min().map(wait)
    }

    /// Whether a step starts copies. Steps are counted as stages are.
    fn copies_in(&self, step: i64, iterations: i64) -> bool {
        self.copying.iter().any(|stage| (0..iterations).contains(&(step - stage)))
    }

    /// As [`AsyncCopies::commit_behind`], in a step that may execute a part of the stages.
    pub(super) fn commit_in_step(&self, step: i64, iterations: i64) -> Option<Stmt> {
        self.copies_in(step, iterations).then_some(Stmt::Copies(Copies::Commit))
    }

    /// The wait at the beginning of a step that may execute a part of the stages.
    pub(super) fn wait_in_step(&self, step: i64, iterations: i64) -> Option<Stmt> {
        let executed = self.needing.iter().filter(|(stage, _)| (0..iterations).contains(&(step - stage)));
        let newest = executed.map(|(stage, needed)| step - stage + needed).max()?;
        let behind = (newest + 1..step).filter(|step| self.copies_in(*step, iterations)).count();
        Some(wait(behind as i64))
    }
}

fn wait(left: i64) -> Stmt {
    Stmt::Copies(Copies::Wait(u32::try_from(left).unwrap_or(0)))
}

/// Makes stores asynchronous, and adds their buffers to `copied`.
fn make_async(program: &Program, stored: &[BufferId], stmt: &mut Stmt, copied: &mut Vec<BufferId>) {
    if let Stmt::Store(node) = stmt {
        if is_copy(program, stored, node) {
            copied.push(node.buffer);
            Arc::make_mut(node).kind = StoreKind::Async;
        }
        return;
    }
    stmt.children_mut().into_iter().for_each(|child| make_async(program, stored, child, copied));
}

/// Whether a store only moves an element of global memory that stays as it is, or zero in its place, into shared memory.
fn is_copy(program: &Program, stored: &[BufferId], store: &Store) -> bool {
    let moved = moved_element(&store.value);
    program.buffer(store.buffer).scope == Scope::Shared
        && moved.is_some_and(|from| {
            program.buffer(from.buffer).scope == Scope::Global && !stored.contains(&from.buffer)
        })
}

//! The grids of a program: each of its nests is one kernel.

use std::sync::Arc;

use tilewright_core::device::CompileError;
use tilewright_core::ids::BufferId;
use tilewright_core::index::Index;
use tilewright_core::program::{Program, Scope};
use tilewright_core::stmt::{For, LoopKind, Stmt};
use tilewright_core::thread_axis::ThreadAxis;

use super::unsupported;

/// A nest of a program: a grid of blocks of threads, and the statement that each thread executes.
pub(super) struct Nest<'p> {
    /// The loops over blocks and threads.
    pub(super) loops: Vec<(ThreadAxis, &'p Arc<For>)>,
    /// The buffers that the threads of a block share.
    pub(super) shared: Vec<BufferId>,
    /// The statement that each thread executes.
    pub(super) body: &'p Stmt,
}

/// The nests of a program, in order, and the intermediates that they pass on to each other.
#[derive(Default)]
pub(super) struct Nests<'p> {
    pub(super) nests: Vec<Nest<'p>>,
    pub(super) workspaces: Vec<BufferId>,
}

impl<'p> Nests<'p> {
    /// Finds them.
    pub(super) fn of(program: &'p Program) -> Result<Self, CompileError> {
        let mut found = Nests::default();
        found.visit(program, &program.body)?;
        Ok(found)
    }

    fn visit(&mut self, program: &'p Program, stmt: &'p Stmt) -> Result<(), CompileError> {
        match stmt {
            Stmt::Seq(stmts) => stmts.iter().try_for_each(|stmt| self.visit(program, stmt)),
            Stmt::Alloc(node) if program.buffer(node.buffer).scope == Scope::Global => {
                self.workspaces.push(node.buffer);
                self.visit(program, &node.body)
            }
            _ => {
                self.nests.push(Nest::of(program, stmt)?);
                Ok(())
            }
        }
    }
}

impl<'p> Nest<'p> {
    fn of(program: &Program, nest: &'p Stmt) -> Result<Self, CompileError> {
        let mut found = Nest { loops: Vec::new(), shared: Vec::new(), body: nest };
        loop {
            match found.body {
                Stmt::For(node) if let LoopKind::Bound(axis) = node.kind => {
                    found.loops.push((axis, node));
                    found.body = &node.body;
                }
                Stmt::Alloc(node) if program.buffer(node.buffer).scope == Scope::Shared => {
                    found.shared.push(node.buffer);
                    found.body = &node.body;
                }
                _ => break,
            }
        }
        if let Some(node) = bound_loop(found.body) {
            let variable = &program.variable(node.var).name;
            return Err(unsupported(format!("loop `{variable}`, which is bound inside of other statements")));
        }
        Ok(found)
    }

    /// The loop of an axis.
    pub(super) fn extent(&self, axis: ThreadAxis) -> Option<&Index> {
        self.loops.iter().find(|(other, _)| *other == axis).map(|(_, node)| &node.extent)
    }

    /// The extents of the grid, by axis.
    pub(super) fn grid(&self) -> [Index; 3] {
        [ThreadAxis::BlockX, ThreadAxis::BlockY, ThreadAxis::BlockZ]
            .map(|axis| self.extent(axis).cloned().unwrap_or(Index::constant(1)))
    }

    /// The threads of a block, by axis.
    pub(super) fn threads(&self) -> [Option<u32>; 3] {
        let extent = |axis| match self.extent(axis) {
            Some(extent) => extent.as_constant().and_then(|extent| u32::try_from(extent).ok()),
            None => Some(1),
        };
        [ThreadAxis::ThreadX, ThreadAxis::ThreadY, ThreadAxis::ThreadZ].map(extent)
    }
}

fn bound_loop(stmt: &Stmt) -> Option<&For> {
    match stmt {
        Stmt::For(node) if matches!(node.kind, LoopKind::Bound(_)) => Some(node),
        _ => stmt.each_child().find_map(bound_loop),
    }
}

//! Nests of loops over blocks and threads become grids: loops over blocks outermost, inside of them loops over the threads of a
//! block, and inside of these the program of one thread.
//!
//! ```text
//! bound block_x for b { alloc s { for k { bound thread_x for t { s[t] = … }  barrier()  bound thread_x for t { … } } } }
//! bound block_x for b { alloc s { bound thread_x for t { for k { s[t] = …  barrier()  … } } } }
//! ```
//!
//! A statement outside of the loops over threads is executed by the first thread, unless it stores to the memory of one thread:
//! then each does so. Memory that threads share is allocated around the loops over threads. Virtual threads become unrolled
//! loops, which a backend may interleave.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::analysis::access::accesses;
use crate::analysis::block::stores;
use crate::ids::{BufferId, VarId};
use crate::index::Index;
use crate::lower::pass::threads::conflict::{Axes, Axis, conflict, local_accesses};
use crate::lower::pass::threads::mark_by_warp::{accesses_fragment, fragment_accesses};
use crate::lower::util::condition::is_negative;
use crate::lower::{LowerError, LowerOptions};
use crate::program::{Program, Scope, VariableKind};
use crate::stmt::{Alloc, Annotations, For, LoopKind, Stmt};
use crate::thread_axis::{ThreadAxis, WARP};
use crate::visit::{for_each_stmt, substitute_stmt};

/// Makes grids of all nests.
pub(in crate::lower) fn bind_threads(program: &mut Program, _: &LowerOptions) -> Result<(), LowerError> {
    let body = std::mem::replace(&mut program.body, Stmt::nothing());
    program.body = nests(program, &body)?;
    Ok(())
}

fn nests(program: &mut Program, stmt: &Stmt) -> Result<Stmt, LowerError> {
    match stmt {
        Stmt::Seq(stmts) => {
            Ok(Stmt::seq(stmts.iter().map(|stmt| nests(program, stmt)).collect::<Result<Vec<_>, _>>()?))
        }
        Stmt::Alloc(node) if program.buffer(node.buffer).scope == Scope::Global => {
            Ok(allocated(node.buffer, nests(program, &node.body)?))
        }
        _ => grid(program, stmt),
    }
}

fn allocated(buffer: BufferId, body: Stmt) -> Stmt {
    Stmt::Alloc(Arc::new(Alloc { buffer, body }))
}

/// The axes of the threads of a block in a nest, with new variables.
pub(super) fn thread_axes(program: &mut Program, nest: &Stmt) -> Result<Axes, LowerError> {
    let mut found: Vec<(ThreadAxis, &For)> = Vec::new();
    for_each_stmt(nest, &mut |stmt| {
        if let Stmt::For(node) = stmt
            && let LoopKind::Bound(axis) = node.kind
            && axis.is_of_block()
            && !found.iter().any(|(other, _)| *other == axis)
        {
            found.push((axis, node));
        }
    });
    found.sort_by_key(|(axis, _)| *axis);
    let has_fragments = accesses_fragment(program, nest);
    let lanes = found.iter().find(|(axis, _)| *axis == ThreadAxis::ThreadX);
    if let Some((axis, node)) = lanes.filter(|(_, node)| has_fragments && !node.extent.is(WARP)) {
        let problem = "a nest with fragments has 32 threads along `x`, the lanes of a warp; bind its warps to `thread_y`";
        return Err(refuse(program, node, *axis, problem));
    }
    let missing = has_fragments && lanes.is_none();
    let lanes = missing.then(|| Axis {
        axis: ThreadAxis::ThreadX,
        var: program.add_variable(ThreadAxis::ThreadX.text(), VariableKind::Loop),
        extent: WARP,
    });
    let axes = found.into_iter().map(|(axis, node)| {
        let Some(extent) = node.extent.as_constant() else {
            return Err(refuse(program, node, axis, "the number of threads of a block must be constant"));
        };
        Ok(Axis { axis, var: program.add_variable(axis.text(), VariableKind::Loop), extent })
    });
    let mut axes = axes.collect::<Result<Vec<_>, _>>()?;
    axes.splice(0..0, lanes);
    Ok(Axes::new(axes))
}

fn refuse(program: &Program, node: &For, axis: ThreadAxis, problem: &'static str) -> LowerError {
    let variable = program.variable(node.var).name.to_string();
    LowerError::Threads { variable, axis: axis.text(), problem }
}

/// The grid of one nest; the nest itself where no loop is bound.
fn grid(program: &mut Program, nest: &Stmt) -> Result<Stmt, LowerError> {
    let axes = thread_axes(program, nest)?;
    let mut binding =
        Binding { program, axes, values: FxHashMap::default(), around: Vec::new(), shared: Vec::new() };
    let (blocks, conditions, inside) = binding.loops_over_blocks(nest)?;
    let mut body = binding.stmt(inside)?;
    body = conditions.into_iter().rev().fold(body, |body, condition| Stmt::when(condition, body));
    let Binding { program, axes, values, shared, .. } = binding;
    substitute_stmt(&mut body, &|var| values.get(&var).cloned());
    for axis in axes.iter() {
        let (id, extent) = (program.fresh_loop(), Index::constant(axis.extent));
        let (kind, annotations) = (LoopKind::Bound(axis.axis), Annotations::new());
        body = Stmt::For(Arc::new(For { id, var: axis.var, extent, kind, annotations, body }));
    }
    body = shared.into_iter().rev().fold(body, |body, buffer| allocated(buffer, body));
    Ok(blocks
        .into_iter()
        .rev()
        .fold(body, |body, node| Stmt::For(Arc::new(For { body, ..For::clone(node) }))))
}

struct Binding<'p> {
    program: &'p mut Program,
    axes: Axes,
    /// The indices that replace the variables of loops over threads.
    values: FxHashMap<VarId, Index>,
    /// The axes of the loops over threads around the current place.
    around: Vec<ThreadAxis>,
    /// The buffers that the threads of a block share.
    shared: Vec<BufferId>,
}

/// The loops over blocks of a nest, the conditions between them, and what stands inside.
type OverBlocks<'s> = (Vec<&'s Arc<For>>, Vec<crate::expr::Expr>, &'s Stmt);

impl Binding<'_> {
    fn loops_over_blocks<'s>(&mut self, nest: &'s Stmt) -> Result<OverBlocks<'s>, LowerError> {
        let (mut loops, mut conditions, mut inside) = (Vec::new(), Vec::new(), nest);
        loop {
            match inside {
                Stmt::For(node) if matches!(node.kind, LoopKind::Bound(axis) if axis.is_of_blocks()) => {
                    loops.push(node);
                    inside = &node.body;
                }
                Stmt::If(node) if node.otherwise.is_none() && holds_blocks(&node.then) => {
                    conditions.push(node.condition.clone());
                    inside = &node.then;
                }
                Stmt::Alloc(node) if holds_blocks(&node.body) => {
                    let buffer = self.program.buffer(node.buffer);
                    return Err(LowerError::Scope {
                        buffer: buffer.name.to_string(),
                        scope: buffer.scope.text(),
                        problem: "several blocks of threads use it; make it `global`",
                    });
                }
                _ => return Ok((loops, conditions, inside)),
            }
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, LowerError> {
        match stmt {
            Stmt::Seq(stmts) => {
                Ok(Stmt::seq(stmts.iter().map(|stmt| self.stmt(stmt)).collect::<Result<Vec<_>, _>>()?))
            }
            Stmt::For(node) => self.for_loop(node),
            Stmt::Alloc(node) => self.alloc(node),
            Stmt::If(_) => {
                let mut stmt = stmt.clone();
                for child in stmt.children_mut() {
                    *child = self.stmt(child)?;
                }
                Ok(stmt)
            }
            Stmt::Store(_) | Stmt::Intrinsic(_) => {
                self.check_whole_warp(stmt)?;
                Ok(self.by_first_thread(stmt))
            }
            Stmt::Block(_) | Stmt::Barrier | Stmt::Copies(_) | Stmt::Shuffle(_) => Ok(stmt.clone()),
        }
    }

    fn for_loop(&mut self, node: &Arc<For>) -> Result<Stmt, LowerError> {
        let mut kind = node.kind;
        match node.kind {
            LoopKind::Bound(axis) if axis.is_of_blocks() => {
                let problem =
                    "it stands inside other loops or beside other statements; put it around the whole nest";
                return Err(refuse(self.program, node, axis, problem));
            }
            LoopKind::Bound(axis) if axis.is_of_block() => {
                let var = self.axes.find(axis).map_or(node.var, |axis| axis.var);
                self.values.insert(node.var, Index::var(var));
                self.around.push(axis);
                let body = self.stmt(&node.body)?;
                self.around.pop();
                return Ok(body);
            }
            LoopKind::Bound(_) => kind = LoopKind::Unrolled,
            LoopKind::Parallel => {
                let variable = self.program.variable(node.var).name.to_string();
                return Err(LowerError::Parallel { variable });
            }
            LoopKind::Serial | LoopKind::Vectorized | LoopKind::Unrolled => {}
        }
        Ok(Stmt::For(Arc::new(For { kind, body: self.stmt(&node.body)?, ..For::clone(node) })))
    }

    fn alloc(&mut self, node: &Alloc) -> Result<Stmt, LowerError> {
        match self.program.buffer(node.buffer).scope {
            Scope::Shared => {
                self.shared.push(node.buffer);
                return self.stmt(&node.body);
            }
            Scope::Local | Scope::Fragment => self.check_private(node)?,
            Scope::Global | Scope::Streamed => {}
        }
        Ok(allocated(node.buffer, self.stmt(&node.body)?))
    }

    /// Checks that no thread needs what another one has stored to a buffer that each has for itself.
    fn check_private(&self, node: &Alloc) -> Result<(), LowerError> {
        // Threads that differ along an axis around have memory of their own.
        let scope = self.program.buffer(node.buffer).scope;
        // The lanes of a warp access a fragment together.
        let share = |axis: &Axis| scope == Scope::Fragment && axis.axis == ThreadAxis::ThreadX;
        let inside =
            self.axes.iter().filter(|axis| !self.around.contains(&axis.axis)).filter(|axis| !share(axis));
        let axes = Axes::new(inside.cloned().collect());
        // Lanes exchange values of each thread.
        if axes.iter().all(|axis| axis.extent == 1) || is_exchanged(&node.body, node.buffer) {
            return Ok(());
        }
        let accesses = local_accesses(self.program, &axes, &node.body);
        let own: Vec<_> = accesses.into_iter().filter(|access| access.buffer == node.buffer).collect();
        let is_passed_on = own.iter().filter(|access| access.is_store && !access.is_uniform).any(|store| {
            own.iter().any(|other| match other.is_uniform {
                true => !other.is_store,
                false => conflict(&axes, store, other),
            })
        });
        if !is_passed_on {
            return Ok(());
        }
        let buffer = self.program.buffer(node.buffer);
        Err(LowerError::Scope {
            buffer: buffer.name.to_string(),
            scope: buffer.scope.text(),
            problem: "threads of a block pass values to each other through it; make it `shared`",
        })
    }

    /// Checks that no loop over the lanes of a warp is around an access to a fragment.
    fn check_whole_warp(&self, stmt: &Stmt) -> Result<(), LowerError> {
        let accessed = fragment_accesses(self.program, stmt);
        match accessed.first() {
            Some((fragment, _)) if self.around.contains(&ThreadAxis::ThreadX) => {
                let buffer = self.program.buffer(*fragment);
                Err(LowerError::Scope {
                    buffer: buffer.name.to_string(),
                    scope: buffer.scope.text(),
                    problem: "a loop over `thread_x` is around an access; the lanes of a warp access it together",
                })
            }
            _ => Ok(()),
        }
    }

    /// A statement outside of some loops over threads, under the condition that the thread is the first one along their axes.
    fn by_first_thread(&self, stmt: &Stmt) -> Stmt {
        let all_are =
            |scope: Scope| stores(stmt).iter().all(|store| self.program.buffer(store.buffer).scope == scope);
        if all_are(Scope::Local) {
            return stmt.clone();
        }
        // Each warp stores to fragments of its own.
        let of_each_warp = all_are(Scope::Fragment);
        let is_missing = |axis: &&Axis| {
            let counts = axis.axis == ThreadAxis::ThreadX || !of_each_warp;
            counts && axis.extent != 1 && !self.around.contains(&axis.axis)
        };
        let missing = self.axes.iter().filter(is_missing);
        missing
            .fold(stmt.clone(), |stmt, axis| Stmt::when(is_negative(&Index::var(axis.var).offset(-1)), stmt))
    }
}

/// Whether an exchange between lanes accesses a buffer.
fn is_exchanged(stmt: &Stmt, buffer: BufferId) -> bool {
    match stmt {
        Stmt::Shuffle(node) => accesses(&node.body, buffer),
        _ => stmt.each_child().any(|child| is_exchanged(child, buffer)),
    }
}

fn holds_blocks(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::For(node) if matches!(node.kind, LoopKind::Bound(axis) if axis.is_of_blocks()))
        || stmt.each_child().any(holds_blocks)
}

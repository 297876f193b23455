//! Replaces blocks by their statements: iterators become their bindings, guards become conditionals, and initial values become
//! statements before the reduction's outermost loop.
//!
//! ```text
//! for k { for i { block c(vi = i, vk: reduce = k) { init { c[vi] = 0 } c[vi] = c[vi] + a[vi, vk] } } }
//! for i' { c[i'] = 0 } for k { for i { c[i] = c[i] + a[i, k] } }
//! ```
//!
//! An initial value stays in its place, under the condition that every reduction iterator is 0, when another block inside that
//! loop accesses its elements, or when one loop chooses both the element and the values to combine. If such a reduction may
//! have no point, the initial value stands before the loop as well. Loops of a single iteration disappear, and so do statements
//! that never run. An outermost loop over blocks of threads stays, whatever its iterations: it holds the statements of one grid together.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::analysis::block::{loads, reads, stores, writes};
use crate::analysis::initial::{Roles, UnknownElements, initial_values, under_guards};
use crate::analysis::pipeline::{Plan, statements};
use crate::analysis::scope::blocks;
use crate::ids::{BufferId, VarId};
use crate::index::{Index, Ranges};
use crate::lower::pass::to_loops::pipeline_loops;
use crate::lower::util::copy::copy;
use crate::lower::util::unreached::remove_unreached;
use crate::lower::{LowerError, LowerOptions};
use crate::program::{Program, VariableKind};
use crate::stmt::{Annotations, Block, For, Guard, IterKind, LoopKind, Stmt};
use crate::target::TargetKind;
use crate::visit::substitute_stmt;

/// Replaces every block by its statements.
pub(in crate::lower) fn lower_blocks(
    program: &mut Program,
    options: &LowerOptions,
) -> Result<(), LowerError> {
    clamp_shapes(program);
    let body = program.body.clone();
    let mut lowering = BlockLowering {
        program,
        kind: options.kind,
        ranges: Ranges::new(),
        path: Vec::new(),
        values: FxHashMap::default(),
    };
    let lowered = lowering.stmt(&body)?;
    program.body = lowered;
    // Loops without iterations are gone, also those that copy an empty part; what would read such a copy never runs.
    remove_unreached(program);
    Ok(())
}

/// Makes the extents of intermediates at least 0.
fn clamp_shapes(program: &mut Program) {
    let intermediates: Vec<BufferId> =
        program.buffers().map(|(id, _)| id).filter(|id| program.access(*id).is_none()).collect();
    for id in intermediates {
        let shape: Vec<Index> = program.buffer(id).shape.iter().map(not_negative).collect();
        program.buffer_mut(id).shape = shape;
    }
}

/// A loop around the current place.
struct Enclosing {
    node: Arc<For>,
    /// The statements that must run before the loop.
    before: Vec<Stmt>,
}

struct BlockLowering<'p> {
    program: &'p mut Program,
    kind: TargetKind,
    ranges: Ranges,
    path: Vec<Enclosing>,
    /// The values of variables that no longer exist: iterators, and variables of loops with one iteration.
    values: FxHashMap<VarId, Index>,
}

impl BlockLowering<'_> {
    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, LowerError> {
        match stmt {
            Stmt::Seq(stmts) => {
                Ok(Stmt::seq(stmts.iter().map(|stmt| self.stmt(stmt)).collect::<Result<Vec<_>, _>>()?))
            }
            Stmt::For(node) => self.for_loop(node),
            Stmt::Block(node) => self.block(node),
            Stmt::Store(_)
            | Stmt::If(_)
            | Stmt::Alloc(_)
            | Stmt::Intrinsic(_)
            | Stmt::Barrier
            | Stmt::Copies(_)
            | Stmt::Shuffle(_) => Ok(stmt.clone()),
        }
    }

    fn for_loop(&mut self, node: &Arc<For>) -> Result<Stmt, LowerError> {
        if let (LoopKind::Bound(axis), TargetKind::Cpu) = (node.kind, self.kind) {
            let variable = self.program.variable(node.var).name.to_string();
            return Err(LowerError::Bound { variable, axis: axis.text() });
        }
        if node.extent.is(1) {
            self.values.insert(node.var, Index::constant(0));
            let body = self.stmt(&node.body)?;
            let is_grid = over_blocks(node) && self.path.iter().all(|outer| over_blocks(&outer.node));
            return Ok(if is_grid { Stmt::For(Arc::new(For { body, ..For::clone(node) })) } else { body });
        }
        let plan =
            Plan::of_statements(node).map_err(|fault| pipeline_loops::refuse(self.program, node, fault))?;
        let extent = not_negative(&node.extent);
        let never_runs = extent.is(0);
        if !never_runs {
            // With an empty range, every condition on a reduction inside would be provable.
            self.ranges.insert(node.var, extent.clone());
        }
        self.path.push(Enclosing { node: node.clone(), before: Vec::new() });
        let body = if plan.is_some() { self.marked(&node.body)? } else { self.stmt(&node.body)? };
        let before = self.path.pop().map(|enclosing| enclosing.before).unwrap_or_default();
        self.ranges.remove(node.var);
        let lowered = (!never_runs).then(|| Stmt::For(Arc::new(For { extent, body, ..For::clone(node) })));
        Ok(Stmt::seq(before.into_iter().chain(lowered)))
    }

    /// The statements of a pipelined loop, marked as its statements.
    fn marked(&mut self, body: &Stmt) -> Result<Stmt, LowerError> {
        let mut marked = Vec::new();
        for (number, stmt) in statements(body).iter().enumerate() {
            let stmt = self.stmt(stmt)?;
            if !stmt.is_nothing() {
                marked.push(pipeline_loops::mark(self.program, number, stmt));
            }
        }
        Ok(Stmt::seq(marked))
    }

    /// An index in terms of the loops that stay.
    fn resolve(&self, index: &Index) -> Index {
        let resolved = index.substitute(&|var| self.values.get(&var).cloned());
        resolved.simplify(&self.ranges)
    }

    fn block(&mut self, block: &Block) -> Result<Stmt, LowerError> {
        if block.iters.iter().any(|iter| iter.kind != IterKind::Reduce && iter.extent.is(0)) {
            return Ok(Stmt::nothing());
        }
        let (mut spatial, mut reduce) = (Vec::new(), Vec::new());
        for iter in &block.iters {
            let binding = self.resolve(&iter.binding);
            self.values.insert(iter.var, binding.clone());
            match iter.kind {
                IterKind::Spatial | IterKind::Ordered => spatial.push(binding),
                IterKind::Reduce => reduce.push(binding),
            }
        }
        let mut guards: Vec<Guard> = Vec::new();
        for guard in &block.guards {
            let guard = Guard { index: self.resolve(&guard.index), bound: self.resolve(&guard.bound) };
            if !guard.index.is_provably_less(&guard.bound, &self.ranges) && !guards.contains(&guard) {
                guards.push(guard);
            }
        }
        let mut body = self.instantiate(&block.body);
        if let Some(init) = &block.init {
            let init = self.instantiate(init);
            let roles = Roles::new(spatial, reduce, &guards);
            body = match self.init_place(block, &roles) {
                InitPlace::Here => Stmt::seq([init, body]),
                InitPlace::Before(depth) => {
                    let nest = self.init_nest(depth, &roles, &guards, init);
                    self.path[depth].before.push(nest);
                    body
                }
                InitPlace::AtFirst(depth) => {
                    self.keep_without_points(block, depth, &roles, &guards, init.clone())?;
                    Stmt::seq([roles.at_first_point(init), body])
                }
            };
        }
        Ok(under_guards(&guards, body))
    }

    /// Puts the initial values before each loop of the reduction as well, from the outermost one at `depth` on, for the case that
    /// the loop has no iteration.
    fn keep_without_points(
        &mut self,
        block: &Block,
        depth: usize,
        roles: &Roles,
        guards: &[Guard],
        init: Stmt,
    ) -> Result<(), LowerError> {
        for depth in depth..self.path.len() {
            if !roles.reduces(self.path[depth].node.var) {
                continue;
            }
            let loops = self.path[depth..].iter().map(|outer| &outer.node);
            let nest = initial_values(block, init.clone(), guards, roles, loops)
                .map_err(|UnknownElements| LowerError::UnknownElements { block: block.name.to_string() })?;
            if let Some(nest) = nest {
                let nest = copy(self.program, &nest);
                self.path[depth].before.push(nest);
            }
        }
        Ok(())
    }

    fn instantiate(&self, stmt: &Stmt) -> Stmt {
        let mut stmt = stmt.clone();
        substitute_stmt(&mut stmt, &|var| self.values.get(&var).cloned());
        clamp_body_loops(&mut stmt);
        stmt
    }

    fn init_place(&self, block: &Block, roles: &Roles) -> InitPlace {
        let Some(depth) = self.path.iter().position(|outer| roles.reduces(outer.node.var)) else {
            return InitPlace::Here;
        };
        let inner = &self.path[depth..];
        let is_mixed = |var: VarId| roles.reduces(var) && roles.chooses_elements(var);
        if inner.iter().any(|outer| is_mixed(outer.node.var)) || shares_elements(&inner[0].node, block) {
            return InitPlace::AtFirst(depth);
        }
        InitPlace::Before(depth)
    }

    /// The initial value for all elements that the loops from `depth` on access, in copies of the loops that choose elements.
    fn init_nest(&mut self, depth: usize, roles: &Roles, guards: &[Guard], init: Stmt) -> Stmt {
        let is_chosen_by = |outer: &&Enclosing| roles.chooses_elements(outer.node.var);
        let chosen: Vec<Arc<For>> =
            self.path[depth..].iter().filter(is_chosen_by).map(|outer| outer.node.clone()).collect();
        // At the first point of the reduction its loops are at 0.
        let mut values: FxHashMap<VarId, Index> =
            self.path[depth..].iter().map(|outer| (outer.node.var, Index::constant(0))).collect();
        let kept: Vec<&Guard> = guards.iter().filter(|guard| !roles.guards_reduction_alone(guard)).collect();
        let mut nest = under_guards(kept, init);
        let mut loops = Vec::new();
        for node in chosen {
            let name = self.program.variable(node.var).name.clone();
            let var = self.program.add_variable(name, VariableKind::Loop);
            values.insert(node.var, Index::var(var));
            let kind = if node.kind == LoopKind::Parallel { LoopKind::Serial } else { node.kind };
            let (id, extent) = (self.program.fresh_loop(), not_negative(&node.extent));
            loops.push(For { id, var, extent, kind, annotations: Annotations::new(), body: Stmt::nothing() });
        }
        substitute_stmt(&mut nest, &|var| values.get(&var).cloned());
        loops.into_iter().rev().fold(nest, |body, node| Stmt::For(Arc::new(For { body, ..node })))
    }
}

/// Whether a loop is bound to an axis of the blocks of a grid.
fn over_blocks(node: &For) -> bool {
    matches!(node.kind, LoopKind::Bound(axis) if axis.is_of_blocks())
}

/// Where a block's initial value goes.
enum InitPlace {
    /// Directly before the body, which runs once for each element.
    Here,
    /// Before the loop at a depth of the path.
    Before(usize),
    /// Before the body, when the reduction is at its first point, and before the loop at a depth of the path, for the case that
    /// the reduction has no point.
    AtFirst(usize),
}

/// Whether, inside a loop, another block accesses what `block` initialises or writes what its initial
/// value reads.
fn shares_elements(node: &Arc<For>, block: &Block) -> bool {
    let others = blocks(&node.body);
    if others.len() == 1 {
        return false;
    }
    let initialised = block.init.iter().flat_map(stores).map(|store| store.buffer).collect::<Vec<_>>();
    let read = block.init.iter().flat_map(loads).map(|access| access.buffer).collect::<Vec<_>>();
    others.into_iter().filter(|other| other.id != block.id).any(|other| {
        let written = writes(other);
        written.iter().chain(&reads(other)).any(|buffer| initialised.contains(buffer))
            || written.iter().any(|buffer| read.contains(buffer))
    })
}

/// Drops the loops of a block's body that never run, as elements that they read may never be stored, and makes all extents at
/// least 0.
fn clamp_body_loops(stmt: &mut Stmt) {
    if let Stmt::For(node) = stmt {
        let extent = not_negative(&node.extent);
        if extent.is(0) {
            *stmt = Stmt::nothing();
        } else if extent != node.extent {
            Arc::make_mut(node).extent = extent;
        }
    }
    stmt.children_mut().into_iter().for_each(clamp_body_loops);
}

/// An extent, or zero where it is negative (`N - 1` for `N = 0`): later passes divide extents.
fn not_negative(extent: &Index) -> Index {
    if extent.is_provably_nonnegative(&Ranges::new()) {
        extent.clone()
    } else {
        extent.maximum(&Index::constant(0))
    }
}

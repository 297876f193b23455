//! From blocks to statements: iterators become their bindings, guards conditionals, and initial values
//! statements before the reduction's outermost loop.
//!
//! ```text
//! for k { for i { block c(vi = i, vk: reduce = k) { init { c[vi] = 0 } c[vi] = c[vi] + a[vi, vk] } } }
//! for i' { c[i'] = 0 } for k { for i { c[i] = c[i] + a[i, k] } }
//! ```
//!
//! An initial value whose elements are touched by another block inside that loop stays in its place,
//! under the condition that every reduction iterator is 0. Loops of a single iteration disappear, and so does what never runs.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::analysis::block::{loads, reads, stores, writes};
use crate::analysis::scope::blocks;
use crate::expr::{BinaryOp, Expr};
use crate::ids::VarId;
use crate::index::{Index, Ranges};
use crate::lower::{LowerError, LowerOptions};
use crate::program::{Program, VariableKind};
use crate::stmt::{Annotations, Block, For, Guard, IterKind, LoopKind, Stmt};
use crate::visit::substitute_stmt;

/// Replaces every block by its statements.
pub(super) fn dissolve_blocks(program: &mut Program, _: &LowerOptions) -> Result<(), LowerError> {
    let body = program.body.clone();
    let mut dissolver =
        Dissolver { program, ranges: Ranges::new(), path: Vec::new(), values: FxHashMap::default() };
    let dissolved = dissolver.stmt(&body);
    program.body = dissolved;
    Ok(())
}

/// A loop around the current place.
struct Enclosing {
    node: Arc<For>,
    /// What must run before the loop.
    before: Vec<Stmt>,
}

struct Dissolver<'p> {
    program: &'p mut Program,
    ranges: Ranges,
    path: Vec<Enclosing>,
    /// The values of variables that no longer exist: of loops with one iteration, and iterators.
    values: FxHashMap<VarId, Index>,
}

/// The loops around a block by what they do for it.
struct Roles {
    /// The values of the reduction iterators.
    reduce: Vec<Index>,
    /// The variables of loops that choose elements.
    spatial: Vec<VarId>,
    /// The variables of loops that choose values to combine.
    reduction: Vec<VarId>,
}

impl Roles {
    fn new(spatial: &[Index], reduce: Vec<Index>, guards: &[Guard]) -> Self {
        let vars_of = |indices: &[Index]| {
            let mut vars = Vec::new();
            indices.iter().for_each(|index| index.for_each_var(&mut |var| vars.push(var)));
            vars
        };
        let (spatial, mut reduction) = (vars_of(spatial), vars_of(&reduce));
        // What a guard of the reduction mentions besides, for the points that the loops enumerate in
        // excess, is a loop of the reduction as well.
        for _ in guards {
            for guard in guards {
                let vars = vars_of(std::slice::from_ref(&guard.index));
                let chooses = |others: &[VarId]| vars.iter().any(|var| others.contains(var));
                if chooses(&reduction) && !chooses(&spatial) {
                    reduction
                        .extend(vars.into_iter().filter(|var| !reduction.contains(var)).collect::<Vec<_>>());
                }
            }
        }
        Roles { reduce, spatial, reduction }
    }

    fn reduces(&self, var: VarId) -> bool {
        self.reduction.contains(&var)
    }

    fn chooses_elements(&self, var: VarId) -> bool {
        self.spatial.contains(&var)
    }
}

impl Dissolver<'_> {
    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::Seq(stmts) => Stmt::seq(stmts.iter().map(|stmt| self.stmt(stmt)).collect::<Vec<_>>()),
            Stmt::For(node) => self.for_loop(node),
            Stmt::Block(node) => self.block(node),
            Stmt::Store(_) | Stmt::If(_) | Stmt::Alloc(_) => stmt.clone(),
        }
    }

    fn for_loop(&mut self, node: &Arc<For>) -> Stmt {
        if node.extent.is(0) {
            return Stmt::nothing();
        }
        if node.extent.is(1) {
            self.values.insert(node.var, Index::constant(0));
            return self.stmt(&node.body);
        }
        self.ranges.insert(node.var, node.extent.clone());
        self.path.push(Enclosing { node: node.clone(), before: Vec::new() });
        let body = self.stmt(&node.body);
        let before = self.path.pop().map(|enclosing| enclosing.before).unwrap_or_default();
        self.ranges.remove(node.var);
        let lowered = Stmt::For(Arc::new(For {
            id: node.id,
            var: node.var,
            extent: node.extent.clone(),
            kind: node.kind,
            annotations: node.annotations.clone(),
            body,
        }));
        if before.is_empty() { lowered } else { Stmt::seq(before.into_iter().chain([lowered])) }
    }

    /// An index in terms of the loops that stay.
    fn resolve(&self, index: &Index) -> Index {
        let resolved = index.substitute(&|var| self.values.get(&var).cloned());
        resolved.simplify(&self.ranges)
    }

    fn block(&mut self, block: &Block) -> Stmt {
        let (mut spatial, mut reduce) = (Vec::new(), Vec::new());
        for iter in &block.iters {
            let binding = self.resolve(&iter.binding);
            self.values.insert(iter.var, binding.clone());
            match iter.kind {
                IterKind::Spatial => spatial.push(binding),
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
            let roles = Roles::new(&spatial, reduce, &guards);
            body = match self.init_place(block, &roles) {
                InitPlace::Here => Stmt::seq([init, body]),
                InitPlace::Before(depth) => {
                    let nest = self.init_nest(depth, &roles, &guards, init);
                    self.path[depth].before.push(nest);
                    body
                }
                InitPlace::AtFirst => Stmt::seq([at_first_point(&roles, init), body]),
            };
        }
        under_guards(&guards, body)
    }

    fn instantiate(&self, stmt: &Stmt) -> Stmt {
        let mut stmt = stmt.clone();
        substitute_stmt(&mut stmt, &|var| self.values.get(&var).cloned());
        stmt
    }

    fn init_place(&self, block: &Block, roles: &Roles) -> InitPlace {
        let Some(depth) = self.path.iter().position(|outer| roles.reduces(outer.node.var)) else {
            return InitPlace::Here;
        };
        let inner = &self.path[depth..];
        let is_mixed = |var: VarId| roles.reduces(var) && roles.chooses_elements(var);
        if inner.iter().any(|outer| is_mixed(outer.node.var)) || shares_elements(&inner[0].node, block) {
            return InitPlace::AtFirst;
        }
        InitPlace::Before(depth)
    }

    /// The initial value for all elements that the loops from `depth` on touch, in copies of those that
    /// choose elements.
    fn init_nest(&mut self, depth: usize, roles: &Roles, guards: &[Guard], init: Stmt) -> Stmt {
        let is_chosen_by = |outer: &&Enclosing| roles.chooses_elements(outer.node.var);
        let chosen: Vec<Arc<For>> =
            self.path[depth..].iter().filter(is_chosen_by).map(|outer| outer.node.clone()).collect();
        // At the first point of the reduction its loops are at 0. What guards the reduction alone says
        // which values are combined, not which elements have a value.
        let mut values: FxHashMap<VarId, Index> =
            self.path[depth..].iter().map(|outer| (outer.node.var, Index::constant(0))).collect();
        let guards = guards.iter().filter(|guard| {
            let mut of_reduction = false;
            let mut of_element = false;
            guard.index.for_each_var(&mut |var| {
                of_reduction |= roles.reduces(var);
                of_element |= roles.chooses_elements(var);
            });
            of_element || !of_reduction
        });
        let mut nest = under_guards(&guards.cloned().collect::<Vec<_>>(), init);
        let mut loops = Vec::new();
        for node in chosen {
            let name = self.program.variable(node.var).name.clone();
            let var = self.program.add_variable(name, VariableKind::Loop);
            values.insert(node.var, Index::var(var));
            let kind = if node.kind == LoopKind::Parallel { LoopKind::Serial } else { node.kind };
            let (id, extent) = (self.program.fresh_loop(), node.extent.clone());
            loops.push(For { id, var, extent, kind, annotations: Annotations::new(), body: Stmt::nothing() });
        }
        substitute_stmt(&mut nest, &|var| values.get(&var).cloned());
        loops.into_iter().rev().fold(nest, |body, node| Stmt::For(Arc::new(For { body, ..node })))
    }
}

/// Where a block's initial value goes.
enum InitPlace {
    /// Directly before the body, which runs once for each element.
    Here,
    /// Before the loop at a depth of the path.
    Before(usize),
    /// Before the body, when the reduction is at its first point.
    AtFirst,
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

fn at_first_point(roles: &Roles, init: Stmt) -> Stmt {
    roles.reduce.iter().rev().filter(|binding| binding.as_constant().is_none()).fold(init, |init, binding| {
        let condition =
            Expr::binary(BinaryOp::Eq, Expr::index(binding.clone()), Expr::index(Index::constant(0)));
        Stmt::when(condition, init)
    })
}

/// One conditional for each guard, so that each can move on its own.
fn under_guards(guards: &[Guard], body: Stmt) -> Stmt {
    guards.iter().rev().fold(body, |body, guard| {
        let (index, bound) = (Expr::index(guard.index.clone()), Expr::index(guard.bound.clone()));
        Stmt::when(Expr::binary(BinaryOp::Lt, index, bound), body)
    })
}

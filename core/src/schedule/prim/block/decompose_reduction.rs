//! `decompose_reduction`

use std::sync::Arc;

use crate::analysis::block::{is_ordered_by, is_tiled_reduction, loads, reads, writes};
use crate::analysis::scope::{blocks, loops_around};
use crate::ids::{BufferId, VarId};
use crate::index::Index;
use crate::index::iter_map::{IterMapError, MapLevel, detect};
use crate::program::VariableKind;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::edit::{edit_block, edit_loop, flatten_sequences, fresh_block_name, fresh_loop, nest};
use crate::schedule::find::require_block;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, LoopRv, Schedule, ScheduleError, Value};
use crate::stmt::{Annotations, Block, For, Guard, IterKind, Stmt};
use crate::visit::{listed, substitute_stmt};

/// Moves the initial value of a reduction into a block of its own, just before a loop.
///
/// ```text
/// before
/// kernel sums(in a: f32[4, 8], out s: f32[4]) {
///   for i in 0..4 {
///     for k in 0..8 {
///       block s(vi: spatial 4 = i, vk: reduce 8 = k) {
///         init {
///           s[vi] = 0.0
///         }
///         s[vi] = s[vi] + a[vi, vk]
///       }
///     }
///   }
/// }
/// apply
/// %0 = get_block "s"
/// %1, %2 = get_loops %0
/// %3 = decompose_reduction %0, %2
/// after
/// kernel sums(in a: f32[4, 8], out s: f32[4]) {
///   for i in 0..4 {
///     block s_init(vi: spatial 4 = i) {
///       s[vi] = 0.0
///     }
///     for k in 0..8 {
///       block s(vi_1: spatial 4 = i, vk: reduce 8 = k) {
///         s[vi_1] = s[vi_1] + a[vi_1, vk]
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DecomposeReduction {
    /// The reduction.
    pub block: BlockRv,
    /// A loop around it that contains every loop of the reduction.
    pub target: LoopRv,
}

impl Primitive for DecomposeReduction {
    const NAME: &'static str = "decompose_reduction";
    const KEEPS_ORDER: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))?;
        visitor.visit(Argument::Loop(&mut self.target))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.block(self.block)?;
        let target = context.values.target_loop(self.target)?;
        let block = require_block(context.program, id)?.clone();
        if !is_tiled_reduction(&block) {
            return Err(ScheduleError::NotReduction(id));
        }
        let path = loops_around(&context.program.body, id).ok_or(ScheduleError::MissingBlock(id))?;
        let depth = path.iter().position(|node| node.id == target);
        let depth = depth.ok_or(ScheduleError::NotReductionLoop { target, block: id })?;
        // Each step of a recurrence starts anew.
        if let Some(ordered) = path[depth..].iter().find(|node| is_ordered_by(&block, node.var)) {
            return Err(ScheduleError::OrderedLoop { target: ordered.id, block: id });
        }
        let is_reducing = |var: VarId| {
            block.iters.iter().any(|iter| iter.kind == IterKind::Reduce && iter.binding.mentions(var))
        };
        if let Some(outer) = path[..depth].iter().find(|node| is_reducing(node.var)) {
            return Err(ScheduleError::ReductionOutside { target: outer.id, block: id });
        }
        let is_spatial = |var: VarId| {
            block.iters.iter().any(|iter| iter.kind == IterKind::Spatial && iter.binding.mentions(var))
        };
        if let Some(mixed) = path.iter().find(|node| is_reducing(node.var) && is_spatial(node.var)) {
            return Err(ScheduleError::NotReductionLoop { target: mixed.id, block: id });
        }
        if !visits_each_point_once(&block, &path[depth..]) {
            return Err(ScheduleError::NotReductionLoop { target, block: id });
        }
        let inner: Vec<For> = path[depth..]
            .iter()
            .filter(|node| !is_reducing(node.var))
            .map(|node| For { body: Stmt::nothing(), ..For::clone(node) })
            .collect();
        check_guards(&block, &path[depth..], &is_reducing)?;
        check_order(&block, path[depth])?;
        // A loop that several blocks share runs the new block before all of them.
        let made = make_init(context, &block, inner, &is_reducing);
        let output = blocks(&made)[0].id;
        edit_block(&mut context.program.body, id, &mut |block| block.init = None);
        let mut made = Some(made);
        edit_loop(&mut context.program.body, target, &mut |stmt| {
            if let Some(made) = made.take() {
                *stmt = Stmt::seq([made, stmt.clone()]);
            }
        });
        flatten_sequences(&mut context.program.body);
        Ok(Outputs::from_slice(&[Value::Block(output)]))
    }
}

/// A guard either concerns the reduction, and does not bear on the initial value, or it does not.
fn check_guards(
    block: &Block,
    inner: &[&Arc<For>],
    is_reducing: &dyn Fn(VarId) -> bool,
) -> Result<(), ScheduleError> {
    for guard in &block.guards {
        let (mut reduces, mut spatial) = (None, false);
        for node in inner.iter().filter(|node| guard.index.mentions(node.var)) {
            if is_reducing(node.var) {
                reduces = Some(node.id);
            } else {
                spatial = true;
            }
        }
        if let (Some(target), true) = (reduces, spatial) {
            return Err(ScheduleError::Guarded { target, block: block.id });
        }
    }
    Ok(())
}

/// Whether the loops enumerate each point of the block at most once. Where they repeat one, in a loop that no iterator
/// follows or in tiles that overlap, each repetition starts from the initial value.
fn visits_each_point_once(block: &Block, loops: &[&Arc<For>]) -> bool {
    let bindings: Vec<Index> = block.iters.iter().map(|iter| iter.binding.clone()).collect();
    let iterators: Vec<(VarId, Index)> = loops.iter().map(|node| (node.var, node.extent.clone())).collect();
    let is_inside = |guard: &&Guard| iterators.iter().any(|(var, _)| guard.index.mentions(*var));
    let guards: Vec<Guard> = block.guards.iter().filter(is_inside).cloned().collect();
    match detect(&bindings, &iterators, &guards, MapLevel::Injective) {
        Ok(_) | Err(IterMapError::EmptyDomain { .. }) => true,
        Err(_) => false,
    }
}

/// The initial value moves before the blocks that come first in the loop: they may neither make what it is
/// computed from nor use the elements that it overwrites.
fn check_order(block: &Block, target: &For) -> Result<(), ScheduleError> {
    let needed: Vec<BufferId> =
        block.init.iter().flat_map(loads).map(|load| load.buffer).chain(writes(block)).collect();
    let overwritten = writes(block);
    for other in blocks(&target.body).into_iter().take_while(|other| other.id != block.id) {
        let makes = writes(other).iter().any(|buffer| needed.contains(buffer));
        if makes || reads(other).iter().any(|buffer| overwritten.contains(buffer)) {
            return Err(ScheduleError::ProducerOutside { block: block.id, producer: other.id });
        }
    }
    Ok(())
}

/// The block of the initial value in copies of the loops that are not reduced over.
fn make_init(
    context: &mut Context<'_>,
    block: &Block,
    inner: Vec<For>,
    is_reducing: &dyn Fn(VarId) -> bool,
) -> Stmt {
    let program = &mut *context.program;
    let mut renamed: Vec<(VarId, Index)> = Vec::new();
    let mut loops = Vec::new();
    for node in inner {
        let name = program.variable(node.var).name.clone();
        let fresh = fresh_loop(program, &name, node.extent.clone());
        renamed.push((node.var, Index::var(fresh.var)));
        loops.push(For { kind: node.kind, ..fresh });
    }
    let mut iters = Vec::new();
    for iter in block.iters.iter().filter(|iter| iter.kind != IterKind::Reduce) {
        let name = program.variable(iter.var).name.clone();
        let var = program.add_variable(name, VariableKind::Iter);
        renamed.push((iter.var, Index::var(var)));
        iters.push(crate::stmt::Iter { var, ..iter.clone() });
    }
    let mentions_reduction = |index: &Index| {
        let mut found = false;
        index.for_each_var(&mut |var| found |= is_reducing(var));
        found
    };
    let guards = block.guards.iter().filter(|guard| !mentions_reduction(&guard.index)).cloned().collect();
    let made = Block {
        id: program.fresh_block(),
        name: fresh_block_name(program, &format!("{}_init", block.name)),
        iters,
        guards,
        init: None,
        body: block.init.clone().unwrap_or_else(Stmt::nothing),
        annotations: Annotations::new(),
        location: block.location.clone(),
    };
    let mut stmt = nest(loops, Stmt::Block(Arc::new(made)));
    substitute_stmt(&mut stmt, &listed(&renamed));
    stmt
}

impl Schedule {
    /// Takes the initial value out of a reduction, and gives the new block. See [`DecomposeReduction`].
    ///
    /// # Errors
    /// When the block is no reduction, the loop does not contain all of it, or blocks that come before it in the loop
    /// make what its initial value is computed from.
    pub fn decompose_reduction(&mut self, block: BlockRv, target: LoopRv) -> Result<BlockRv, ScheduleError> {
        self.push_one(DecomposeReduction { block, target }).map(BlockRv)
    }
}

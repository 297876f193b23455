//! `rfactor`

use std::sync::Arc;

use crate::analysis::block::{Reduction, is_reduction, reduction};
use crate::analysis::scope::{blocks, loops_around, writers};
use crate::expr::{BinaryOp, Expr, Indices};
use crate::ids::{LoopId, VarId};
use crate::index::Index;
use crate::program::{Buffer, Program, Scope, VariableKind};
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::edit::{edit_block, fresh_block_name, fresh_loop, insert_statement, nest};
use crate::schedule::find::{require_block, root_position};
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, LoopRv, Schedule, ScheduleError, Value};
use crate::stmt::{Annotations, Block, For, Guard, Iter, IterKind, LoopKind, Stmt};
use crate::visit::{listed, substitute_stmt};

/// Factors a reduction loop: each of its iterations reduces into an element of its own in a new buffer, and a new block
/// combines these partial results afterwards.
///
/// A guard of the reduction leaves out points that its loops enumerate in excess, as those of tiles that do not divide the extent.
/// Each partial result has a point there instead, whose value changes nothing: `select(k_0*3 + k_1 < 8, a[…], 0.0)`.
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
/// %3, %4 = split %2, [2, 4]
/// %5, %6 = rfactor %0, %4, -1
/// after
/// kernel sums(in a: f32[4, 8], out s: f32[4]) {
///   buffer s_partial: f32[4, 4] global
///   for i in 0..4 {
///     for k_0 in 0..2 {
///       for k_1 in 0..4 {
///         block s_partial(vi: spatial 4 = i, vk_0: reduce 2 = k_0, vk_1: spatial 4 = k_1) {
///           init {
///             s_partial[vi, vk_1] = 0.0
///           }
///           s_partial[vi, vk_1] = s_partial[vi, vk_1] + a[vi, vk_0*4 + vk_1]
///         }
///       }
///     }
///   }
///   for vi_1 in 0..4 {
///     for k_2 in 0..4 {
///       block s(vi_2: spatial 4 = vi_1, vk_2: reduce 4 = k_2) {
///         init {
///           s[vi_2] = 0.0
///         }
///         s[vi_2] = s[vi_2] + s_partial[vi_2, vk_2]
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RFactor {
    /// The reduction.
    pub block: BlockRv,
    /// The loop, which must belong to the reduction alone.
    pub target: LoopRv,
    /// Where the new dimension stands in the new buffer, from 0; negative counts from the end.
    pub axis: i64,
}

impl Primitive for RFactor {
    const NAME: &'static str = "rfactor";

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))?;
        visitor.visit(Argument::Loop(&mut self.target))?;
        visitor.visit(Argument::Number(&mut self.axis))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.block(self.block)?;
        let target = context.values.target_loop(self.target)?;
        let program = &mut *context.program;
        let block = require_block(program, id)?.clone();
        let path: Vec<For> = check(program, &block, target)?;
        let found = reduction(&block).ok_or(ScheduleError::NotReduction(id))?;
        let rank = found.store.indices.len() as i64;
        let axis = if self.axis < 0 { self.axis + rank + 1 } else { self.axis };
        if !(0..=rank).contains(&axis) {
            return Err(ScheduleError::AxisOutOfRange(self.axis));
        }
        let position = root_position(program, id)?;
        let factored =
            path.iter().find(|node| node.id == target).ok_or(ScheduleError::MissingLoop(target))?;
        let partial = add_partial_buffer(program, &found, factored, axis as usize);
        let partial_block = factor_block(program, &block, &found, &path, factored, partial, axis as usize);
        let combine = combine_nest(program, &block, &found, factored, partial, axis as usize);
        let made = blocks(&combine)[0].id;
        edit_block(&mut program.body, id, &mut |block| *block = partial_block.clone());
        insert_statement(&mut program.body, position + 1, combine);
        Ok(Outputs::from_slice(&[Value::Block(id), Value::Block(made)]))
    }
}

/// Checks the preconditions; the answer is the loops around the block, without their bodies.
fn check(program: &Program, block: &Block, target: LoopId) -> Result<Vec<For>, ScheduleError> {
    let id = block.id;
    if !is_reduction(block) {
        return Err(ScheduleError::NotReduction(id));
    }
    let path = loops_around(&program.body, id).ok_or(ScheduleError::MissingBlock(id))?;
    let refusal = ScheduleError::NotReductionLoop { target, block: id };
    let node = path.iter().find(|node| node.id == target).ok_or(refusal)?;
    if node.kind != LoopKind::Serial {
        return Err(ScheduleError::NotSerial(target));
    }
    let mentioned_by = |kind: IterKind, var: VarId| {
        block.iters.iter().any(|iter| iter.kind == kind && iter.binding.mentions(var))
    };
    if !mentioned_by(IterKind::Reduce, node.var) || mentioned_by(IterKind::Spatial, node.var) {
        return Err(refusal);
    }
    // A loop of the reduction must not serve another purpose, and the nest must hold this block alone,
    // since the place where the combining block goes is after the whole nest.
    let shared = path.iter().find(|node| {
        mentioned_by(IterKind::Reduce, node.var)
            && (mentioned_by(IterKind::Spatial, node.var) || blocks(&node.body).len() != 1)
    });
    if let Some(shared) = shared {
        return Err(ScheduleError::NotReductionLoop { target: shared.id, block: id });
    }
    if blocks(&path[0].body).len() != 1 {
        return Err(ScheduleError::NotReductionLoop { target: path[0].id, block: id });
    }
    let reduces = |var: VarId| mentioned_by(IterKind::Reduce, var);
    let is_mixed = |guard: &Guard| {
        let is_other_loop = |var: VarId| !reduces(var) && path.iter().any(|node| node.var == var);
        mentions_any(guard, &reduces) && mentions_any(guard, &is_other_loop)
    };
    if block.guards.iter().any(is_mixed) {
        return Err(ScheduleError::Guarded { target, block: id });
    }
    let store = reduction(block).ok_or(ScheduleError::NotReduction(id))?.store;
    if writers(program, store.buffer).len() != 1 {
        return Err(ScheduleError::SeveralWriters(id));
    }
    Ok(path.into_iter().map(|node| For { body: Stmt::nothing(), ..For::clone(node) }).collect())
}

/// Whether a guard depends on variables of a kind.
fn mentions_any(guard: &Guard, is_of_kind: &dyn Fn(VarId) -> bool) -> bool {
    let mut found = false;
    for index in [&guard.index, &guard.bound] {
        index.for_each_var(&mut |var| found |= is_of_kind(var));
    }
    found
}

fn add_partial_buffer(
    program: &mut Program,
    found: &Reduction<'_>,
    factored: &For,
    axis: usize,
) -> crate::ids::BufferId {
    let original = program.buffer(found.store.buffer).clone();
    let mut shape = original.shape;
    shape.insert(axis, factored.extent.clone());
    let name = format!("{}_partial", original.name).into();
    program.add_buffer(Buffer { name, dtype: original.dtype, shape, scope: Scope::Global })
}

fn with_axis(indices: &Indices, axis: usize, var: VarId) -> Indices {
    let mut indices = indices.clone();
    indices.insert(axis, Index::var(var));
    indices
}

/// The block that reduces each iteration of the factored loop into its own place: that loop becomes a
/// spatial iterator, and every other loop of the reduction a reduction iterator.
fn factor_block(
    program: &mut Program,
    block: &Block,
    found: &Reduction<'_>,
    path: &[For],
    factored: &For,
    partial: crate::ids::BufferId,
    axis: usize,
) -> Block {
    let mut iters: Vec<Iter> =
        block.iters.iter().filter(|iter| iter.kind == IterKind::Spatial).cloned().collect();
    let mut renamed = Vec::new();
    let mut own = None;
    for node in path {
        let reduces =
            block.iters.iter().any(|iter| iter.kind == IterKind::Reduce && iter.binding.mentions(node.var));
        if !reduces {
            continue;
        }
        let name = format!("v{}", program.variable(node.var).name);
        let var = program.add_variable(name, VariableKind::Iter);
        let is_factored = node.id == factored.id;
        if is_factored {
            own = Some(var);
        }
        let kind = if is_factored { IterKind::Spatial } else { IterKind::Reduce };
        iters.push(Iter { var, extent: node.extent.clone(), kind, binding: Index::var(node.var) });
        renamed.push((node.var, Index::var(var)));
    }
    let own = own.expect("the factored loop is one of the reduction's");
    let old_value = |var: VarId| -> Option<Index> {
        let iter = block.iters.iter().find(|iter| iter.var == var && iter.kind == IterKind::Reduce)?;
        Some(iter.binding.substitute(&listed(&renamed)))
    };
    let dtype = found.value.dtype();
    let indices = with_axis(&found.store.indices, axis, own);
    let element = Expr::load(dtype, partial, indices.iter().cloned());
    let is_of_reduction = |var: VarId| renamed.iter().any(|(reduced, _)| *reduced == var);
    let (of_reduction, guards): (Vec<Guard>, Vec<Guard>) =
        block.guards.iter().cloned().partition(|guard| mentions_any(guard, &is_of_reduction));
    let value = of_reduction.iter().fold(found.value.clone(), |value, guard| {
        let [index, bound] = [&guard.index, &guard.bound].map(|index| index.substitute(&listed(&renamed)));
        let is_point = Expr::binary(BinaryOp::Lt, Expr::index(index), Expr::index(bound));
        Expr::select(is_point, value, found.reducer.neutral(dtype))
    });
    let update = Expr::binary(found.reducer.op(), element, value);
    let mut body = Stmt::store(partial, indices.iter().cloned(), update);
    substitute_stmt(&mut body, &old_value);
    let init = Stmt::store(partial, indices, found.reducer.neutral(dtype));
    Block {
        id: block.id,
        name: fresh_block_name(program, &format!("{}_partial", block.name)),
        iters,
        guards,
        init: Some(init),
        body,
        annotations: block.annotations.clone(),
        location: block.location.clone(),
    }
}

/// The block that combines the partial results, in loops of its own, under the reduction's name.
fn combine_nest(
    program: &mut Program,
    block: &Block,
    found: &Reduction<'_>,
    factored: &For,
    partial: crate::ids::BufferId,
    axis: usize,
) -> Stmt {
    let mut loops = Vec::new();
    let mut iters = Vec::new();
    let mut renamed = Vec::new();
    for iter in block.iters.iter().filter(|iter| iter.kind == IterKind::Spatial) {
        let name = program.variable(iter.var).name.clone();
        let node = fresh_loop(program, &name, iter.extent.clone());
        let var = program.add_variable(name, VariableKind::Iter);
        renamed.push((iter.var, Index::var(var)));
        iters.push(Iter {
            var,
            extent: iter.extent.clone(),
            kind: IterKind::Spatial,
            binding: Index::var(node.var),
        });
        loops.push(node);
    }
    let name = program.variable(factored.var).name.clone();
    let node = fresh_loop(program, &name, factored.extent.clone());
    let own = program.add_variable(format!("v{name}"), VariableKind::Iter);
    iters.push(Iter {
        var: own,
        extent: factored.extent.clone(),
        kind: IterKind::Reduce,
        binding: Index::var(node.var),
    });
    loops.push(node);

    let dtype = found.value.dtype();
    let target = found.store.buffer;
    let element = Expr::load(dtype, target, found.store.indices.iter().cloned());
    let part = Expr::load(dtype, partial, with_axis(&found.store.indices, axis, own));
    let body = Stmt::store(
        target,
        found.store.indices.iter().cloned(),
        Expr::binary(found.reducer.op(), element, part),
    );
    let combined = Block {
        id: program.fresh_block(),
        name: block.name.clone(),
        iters,
        guards: Vec::new(),
        init: block.init.clone(),
        body,
        annotations: Annotations::new(),
        location: block.location.clone(),
    };
    let mut stmt = nest(loops, Stmt::Block(Arc::new(combined)));
    substitute_stmt(&mut stmt, &listed(&renamed));
    stmt
}

impl Schedule {
    /// Makes a reduction loop independent, and gives the block of the partial results and the block that combines them.
    /// See [`RFactor`].
    ///
    /// # Errors
    /// When the loop does not belong to a reduction of the block alone, or a guard depends on a loop of the reduction and on another.
    pub fn rfactor(
        &mut self,
        block: BlockRv,
        target: LoopRv,
        axis: i64,
    ) -> Result<(BlockRv, BlockRv), ScheduleError> {
        let made = self.push_many(RFactor { block, target, axis })?;
        Ok((BlockRv(made.start), BlockRv(made.start + 1)))
    }
}

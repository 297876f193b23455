//! `privatize`

use std::sync::Arc;

use crate::analysis::block::{Reducer, Reduction, lone_update, single_store};
use crate::analysis::scope::{blocks, loops_around};
use crate::expr::{BinaryOp, Expr};
use crate::ids::{BufferId, LoopId, VarId};
use crate::index::Index;
use crate::program::{Buffer, Program, Scope, VariableKind};
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::edit::{edit_block, fresh_block_name, fresh_loop, insert_statement, nest};
use crate::schedule::find::{require_block, root_position};
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, LoopRv, Schedule, ScheduleError, Value};
use crate::stmt::{Annotations, Block, For, Guard, Iter, IterKind, LoopKind, Stmt};
use crate::visit::{listed, substitute_stmt};

/// Gives each iteration of a loop over ordered updates a private copy of the buffer, so that the iterations are independent: a new
/// block clears the copies before, and another one combines them with the buffer afterwards.
///
/// The updates of a histogram or a scatter meet in elements that data choose, and are therefore ordered. Those of integers by a sum,
/// product, minimum or maximum give the same result in any order, and are the ones that this primitive takes. A guard, as that of a split
/// that does not divide, becomes a condition around the update.
///
/// ```text
/// before
/// kernel histogram(in x: i32[96], inout h: i32[8]) {
///   for i in 0..96 {
///     block h(vi: ordered 96 = i) {
///       h[bounded(x[vi] as i64, 0..8)] = h[bounded(x[vi] as i64, 0..8)] + 1i32
///     }
///   }
/// }
/// apply
/// %0 = get_block "h"
/// %1 = get_loops %0
/// %2, %3 = split %1, [4, 24]
/// %4, %5, %6 = privatize %0, %2
/// after
/// kernel histogram(in x: i32[96], inout h: i32[8]) {
///   buffer h_private: i32[4, 8] global
///   for i_0 in 0..4 {
///     for a0 in 0..8 {
///       block h_private_init(vi_0: spatial 4 = i_0, va0: spatial 8 = a0) {
///         h_private[vi_0, va0] = 0i32
///       }
///     }
///   }
///   for i_1 in 0..4 {
///     for i_2 in 0..24 {
///       block h_private(vi_1: spatial 4 = i_1, vi_2: ordered 24 = i_2) {
///         h_private[vi_1, bounded(x[vi_1*24 + vi_2] as i64, 0..8)] = h_private[vi_1, bounded(x[vi_1*24 + vi_2] as i64, 0..8)] + 1i32
///       }
///     }
///   }
///   for a0_1 in 0..8 {
///     for i_3 in 0..4 {
///       block h(va0_1: spatial 8 = a0_1, vi_3: reduce 4 = i_3) {
///         h[va0_1] = h[va0_1] + h_private[vi_3, va0_1]
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Privatize {
    /// The block: ordered updates of integers, alone in its loops.
    pub block: BlockRv,
    /// The loop, which must belong to ordered iterators alone.
    pub target: LoopRv,
}

impl Primitive for Privatize {
    const NAME: &'static str = "privatize";
    /// The order of such updates makes no difference, which it checks.
    const KEEPS_ORDER: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))?;
        visitor.visit(Argument::Loop(&mut self.target))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.block(self.block)?;
        let target = context.values.target_loop(self.target)?;
        let program = &mut *context.program;
        let block = require_block(program, id)?.clone();
        let path = check(program, &block, target)?;
        let position = root_position(program, id)?;
        let found = updates(&block).ok_or(ScheduleError::OrderMatters(id))?;
        let spread = path.iter().find(|node| node.id == target).ok_or(ScheduleError::MissingLoop(target))?;
        let copies = add_copies(program, &found, spread);
        let updating = private_block(program, &block, &found, &path, spread, copies);
        let place = Place { block: &block, reducer: found.reducer, original: found.store.buffer, copies, spread };
        let (clear, combine) = (place.clear(program), place.combine(program));
        let made = [blocks(&clear)[0].id, id, blocks(&combine)[0].id];
        edit_block(&mut program.body, id, &mut |block| *block = updating.clone());
        insert_statement(&mut program.body, position + 1, combine);
        insert_statement(&mut program.body, position, clear);
        Ok(made.into_iter().map(Value::Block).collect())
    }
}

/// The updates of a block, if they give the same result in any order.
fn updates(block: &Block) -> Option<Reduction<'_>> {
    let found = lone_update(single_store(block)?)?;
    (block.init.is_none() && found.value.dtype().is_int()).then_some(found)
}

/// Checks the preconditions; the answer is the loops around the block, without their bodies.
fn check(program: &Program, block: &Block, target: LoopId) -> Result<Vec<For>, ScheduleError> {
    let id = block.id;
    if updates(block).is_none() {
        return Err(ScheduleError::OrderMatters(id));
    }
    let path = loops_around(&program.body, id).ok_or(ScheduleError::MissingBlock(id))?;
    let refusal = ScheduleError::NotOrderedLoop { target, block: id };
    let node = path.iter().find(|node| node.id == target).ok_or(refusal)?;
    if node.kind != LoopKind::Serial {
        return Err(ScheduleError::NotSerial(target));
    }
    if !is_of(block, IterKind::Ordered, node.var) {
        return Err(refusal);
    }
    let is_mixed = |node: &&Arc<For>| {
        let others = [IterKind::Spatial, IterKind::Reduce];
        is_of(block, IterKind::Ordered, node.var) && others.iter().any(|kind| is_of(block, *kind, node.var))
    };
    if let Some(mixed) = path.iter().copied().find(is_mixed) {
        return Err(ScheduleError::NotOrderedLoop { target: mixed.id, block: id });
    }
    if blocks(&path[0].body).len() != 1 {
        return Err(ScheduleError::SharedLoops(id));
    }
    let is_of_order = |var: VarId| is_of(block, IterKind::Ordered, var);
    let is_of_others = |var: VarId| !is_of_order(var) && path.iter().any(|node| node.var == var);
    if block.guards.iter().any(|guard| mentions(guard, &is_of_order) && mentions(guard, &is_of_others)) {
        return Err(ScheduleError::Guarded { target, block: id });
    }
    Ok(path.into_iter().map(|node| For { body: Stmt::nothing(), ..For::clone(node) }).collect())
}

/// Whether an iterator of a kind depends on a loop.
fn is_of(block: &Block, kind: IterKind, var: VarId) -> bool {
    block.iters.iter().any(|iter| iter.kind == kind && iter.binding.mentions(var))
}

fn add_copies(program: &mut Program, found: &Reduction<'_>, spread: &For) -> BufferId {
    let original = program.buffer(found.store.buffer).clone();
    let mut shape = original.shape;
    shape.insert(0, spread.extent.clone());
    let name = format!("{}_private", original.name).into();
    program.add_buffer(Buffer { name, dtype: original.dtype, shape, scope: Scope::Global })
}

/// The block that updates the copy of each iteration of the loop: that loop becomes a spatial iterator, and every other loop of the
/// ordered iterators an ordered one.
fn private_block(
    program: &mut Program,
    block: &Block,
    found: &Reduction<'_>,
    path: &[For],
    spread: &For,
    copies: BufferId,
) -> Block {
    let mut iters: Vec<Iter> =
        block.iters.iter().filter(|iter| iter.kind != IterKind::Ordered).cloned().collect();
    let mut renamed = Vec::new();
    let mut own = Index::constant(0);
    for node in path.iter().filter(|node| is_of(block, IterKind::Ordered, node.var)) {
        let name = format!("v{}", program.variable(node.var).name);
        let var = program.add_variable(name, VariableKind::Iter);
        let is_spread = node.id == spread.id;
        if is_spread {
            own = Index::var(var);
        }
        let kind = if is_spread { IterKind::Spatial } else { IterKind::Ordered };
        iters.push(Iter { var, extent: node.extent.clone(), kind, binding: Index::var(node.var) });
        renamed.push((node.var, Index::var(var)));
    }
    let old_value = |var: VarId| -> Option<Index> {
        let iter = block.iters.iter().find(|iter| iter.var == var && iter.kind == IterKind::Ordered)?;
        Some(iter.binding.substitute(&listed(&renamed)))
    };
    let mut indices = found.store.indices.clone();
    indices.insert(0, own);
    let element = Expr::load(found.value.dtype(), copies, indices.iter().cloned());
    let update = Expr::binary(found.reducer.op(), element, found.value.clone());
    let mut body = Stmt::store(copies, indices, update);
    substitute_stmt(&mut body, &old_value);
    let (of_updates, guards): (Vec<Guard>, Vec<Guard>) = block
        .guards
        .iter()
        .cloned()
        .partition(|guard| mentions(guard, &|var| renamed.iter().any(|(node, _)| *node == var)));
    for guard in of_updates.iter().rev() {
        let [index, bound] = [&guard.index, &guard.bound].map(|index| index.substitute(&listed(&renamed)));
        let condition = Expr::binary(BinaryOp::Lt, Expr::index(index), Expr::index(bound));
        body = Stmt::when(condition, body);
    }
    let name = fresh_block_name(program, &format!("{}_private", block.name));
    Block { name, iters, guards, body, ..block.clone() }
}

/// Whether a guard depends on variables of a kind.
fn mentions(guard: &Guard, is_of_kind: &dyn Fn(VarId) -> bool) -> bool {
    let mut found = false;
    for index in [&guard.index, &guard.bound] {
        index.for_each_var(&mut |var| found |= is_of_kind(var));
    }
    found
}

/// The copies, and what they are copies of.
struct Place<'a> {
    block: &'a Block,
    reducer: Reducer,
    original: BufferId,
    copies: BufferId,
    spread: &'a For,
}

impl Place<'_> {
    /// The nest that sets all elements of the copies to the neutral element.
    fn clear(&self, program: &mut Program) -> Stmt {
        let dtype = program.buffer(self.copies).dtype;
        let (loops, iters) = self.domain(program, self.spread.extent.clone(), IterKind::Spatial);
        let indices: Vec<Index> = iters.iter().map(|iter| Index::var(iter.var)).collect();
        let body = Stmt::store(self.copies, indices, self.reducer.neutral(dtype));
        let name = fresh_block_name(program, &format!("{}_private_init", self.block.name));
        self.nest(program, name, loops, iters, body)
    }

    /// The nest that combines the copies with the buffer, under the name of the updates.
    fn combine(&self, program: &mut Program) -> Stmt {
        let dtype = program.buffer(self.copies).dtype;
        let (mut loops, mut iters) = self.domain(program, self.spread.extent.clone(), IterKind::Reduce);
        let of_copy: Vec<Index> = iters.iter().map(|iter| Index::var(iter.var)).collect();
        let of_original = of_copy[1..].to_vec();
        // The copies are combined element by element.
        loops.rotate_left(1);
        iters.rotate_left(1);
        let element = Expr::load(dtype, self.original, of_original.iter().cloned());
        let part = Expr::load(dtype, self.copies, of_copy);
        let body = Stmt::store(self.original, of_original, Expr::binary(self.reducer.op(), element, part));
        self.nest(program, self.block.name.clone(), loops, iters, body)
    }

    /// A loop over the copies, whose iterator is of a kind, and loops over their elements.
    fn domain(&self, program: &mut Program, copies: Index, kind: IterKind) -> (Vec<For>, Vec<Iter>) {
        let shape = program.buffer(self.original).shape.clone();
        let of_elements = shape.into_iter().enumerate();
        let of_elements = of_elements.map(|(axis, extent)| (format!("a{axis}"), extent, IterKind::Spatial));
        let copy = (program.variable(self.spread.var).name.to_string(), copies, kind);
        let all: Vec<_> = std::iter::once(copy).chain(of_elements).collect();
        all.into_iter()
            .map(|(name, extent, kind)| {
                let node = fresh_loop(program, &name.as_str().into(), extent.clone());
                let var = program.add_variable(format!("v{name}"), VariableKind::Iter);
                let binding = Index::var(node.var);
                (node, Iter { var, extent, kind, binding })
            })
            .unzip()
    }

    fn nest(
        &self,
        program: &mut Program,
        name: crate::stmt::Symbol,
        loops: Vec<For>,
        iters: Vec<Iter>,
        body: Stmt,
    ) -> Stmt {
        let made = Block {
            id: program.fresh_block(),
            name,
            iters,
            guards: Vec::new(),
            init: None,
            body,
            annotations: Annotations::new(),
            location: self.block.location.clone(),
        };
        nest(loops, Stmt::Block(Arc::new(made)))
    }
}

impl Schedule {
    /// Makes the iterations of a loop over ordered updates independent; gives the blocks that clear the private copies, update them, and
    /// combine them. See [`Privatize`].
    ///
    /// # Errors
    /// When the updates are not those of integers, the loop does not belong to ordered iterators of the block alone, or its nest holds
    /// another block.
    pub fn privatize(&mut self, block: BlockRv, target: LoopRv) -> Result<[BlockRv; 3], ScheduleError> {
        let made = self.push_many(Privatize { block, target })?;
        Ok([0, 1, 2].map(|number| BlockRv(made.start + number)))
    }
}

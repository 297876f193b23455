//! `update_atomically`

use std::sync::Arc;

use crate::analysis::block::{Reducer, Reduction, loads, lone_update, reads, stores, writes};
use crate::analysis::scope::{blocks, loops_around};
use crate::program::Program;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::edit::edit_block;
use crate::schedule::find::require_block;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, Schedule, ScheduleError};
use crate::stmt::{Block, IterKind, Stmt, StoreKind};

/// Makes each update of a block one step, so that its points may run in any order and at the same time: ordered iterators become those of a
/// reduction, and the loops of a reduction can be bound to blocks of threads or be parallel.
///
/// Updates of integers by a sum, product, minimum or maximum give the same result in any order. Sums of floats are rounded in the order in which
/// they are made; a program with an [accuracy](crate::accuracy) allows any order. A reduction has its initial value in a block of its own, as
/// [`decompose_reduction`](crate::schedule::prim::DecomposeReduction) leaves it.
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
/// update_atomically %0
/// %1 = get_loops %0
/// bind %1, "thread_x"
/// after
/// kernel histogram(in x: i32[96], inout h: i32[8]) {
///   bound thread_x for i in 0..96 {
///     block h(vi: reduce 96 = i) {
///       atomic h[bounded(x[vi] as i64, 0..8)] = h[bounded(x[vi] as i64, 0..8)] + 1i32
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UpdateAtomically {
    /// The block: updates of one element for each of its points, perhaps under conditions.
    pub block: BlockRv,
}

impl Primitive for UpdateAtomically {
    const NAME: &'static str = "update_atomically";
    /// The order of such updates makes no difference, which it checks.
    const KEEPS_ORDER: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.block(self.block)?;
        let program = &mut *context.program;
        let block = require_block(program, id)?.clone();
        let found = update(&block).ok_or(ScheduleError::OrderMatters(id))?;
        if !has_any_order(program, &found) {
            return Err(ScheduleError::OrderMatters(id));
        }
        check_alone(program, &block)?;
        edit_block(&mut program.body, id, &mut |block| {
            for iter in block.iters.iter_mut().filter(|iter| iter.kind == IterKind::Ordered) {
                iter.kind = IterKind::Reduce;
            }
            make_atomic(&mut block.body);
        });
        Ok(Outputs::new())
    }
}

/// The only store of a block, where it updates an element that nothing else in the block accesses.
fn update(block: &Block) -> Option<Reduction<'_>> {
    let stores = stores(&block.body);
    let [store] = stores[..] else { return None };
    let found = lone_update(store).filter(|_| block.init.is_none())?;
    // Conditions around it read no element either.
    let own = loads(&block.body).into_iter().filter(|load| load.buffer == store.buffer).count();
    (own == 1).then_some(found)
}

/// Whether updates may be made in any order.
fn has_any_order(program: &Program, found: &Reduction<'_>) -> bool {
    let dtype = found.value.dtype();
    dtype.is_int() || (dtype.is_float() && found.reducer == Reducer::Sum && program.accuracy.is_some())
}

/// Checks that no other block in the loops of the updates accesses their buffer.
fn check_alone(program: &Program, block: &Block) -> Result<(), ScheduleError> {
    let path = loops_around(&program.body, block.id).ok_or(ScheduleError::MissingBlock(block.id))?;
    let is_of_updates = |var| {
        let mut iters = block.iters.iter();
        iters.any(|iter| iter.kind != IterKind::Spatial && iter.binding.mentions(var))
    };
    let Some(outermost) = path.iter().find(|node| is_of_updates(node.var)) else { return Ok(()) };
    let written = writes(block);
    let shares = |other: &Block| {
        let accessed = reads(other).into_iter().chain(writes(other));
        other.id != block.id && accessed.into_iter().any(|buffer| written.contains(&buffer))
    };
    match blocks(&outermost.body).into_iter().any(|other| shares(other)) {
        true => Err(ScheduleError::SharedLoops(block.id)),
        false => Ok(()),
    }
}

fn make_atomic(stmt: &mut Stmt) {
    if let Stmt::Store(store) = stmt {
        Arc::make_mut(store).kind = StoreKind::Atomic;
    }
    stmt.children_mut().into_iter().for_each(make_atomic);
}

impl Schedule {
    /// Makes each update of a block one step, so that its loops can be spread over threads. See [`UpdateAtomically`].
    ///
    /// # Errors
    /// [`OrderMatters`](ScheduleError::OrderMatters): the block does more than to update elements, or sums of floats have no accuracy that allows
    /// another order. [`SharedLoops`](ScheduleError::SharedLoops): another block in its loops accesses the buffer.
    pub fn update_atomically(&mut self, block: BlockRv) -> Result<(), ScheduleError> {
        self.push(UpdateAtomically { block }, None).map(drop)
    }
}

//! `fuse_reduction_epilogue`

use crate::analysis::block::{
    Reducer, Reduction, complete_store, is_reduction, loads_in, reads, reduction, single_store,
};
use crate::analysis::scope::blocks;
use crate::expr::{Expr, ExprKind, Indices};
use crate::ids::{BlockId, BufferId, VarId};
use crate::index::Index;
use crate::program::Program;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::check::inline::sole_producer;
use crate::schedule::edit::{edit_block, remove_block};
use crate::schedule::find::require_block;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, Schedule, ScheduleError};
use crate::stmt::{Block, Stmt, Store};
use crate::visit::substitute_expr;

/// Fuses an epilogue into a reduction of the same operator, whose initial value its operand becomes: a bias for a sum, a
/// lower bound for a maximum. The reduction then writes the block's buffer.
///
/// Values are combined in another order, as by `rfactor`: exact for integers, minima and maxima. An epilogue with
/// another operator, such as the maximum of a sum and 0, would change the result and is refused.
///
/// ```text
/// before
/// kernel biased(in a: f32[4, 8], in bias: f32[4], out d: f32[4]) {
///   buffer s: f32[4] global
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
///   for i in 0..4 {
///     block d(vi: spatial 4 = i) {
///       d[vi] = s[vi] + bias[vi]
///     }
///   }
/// }
/// apply
/// %0 = get_block "d"
/// fuse_reduction_epilogue %0
/// after
/// kernel biased(in a: f32[4, 8], in bias: f32[4], out d: f32[4]) {
///   for i in 0..4 {
///     for k in 0..8 {
///       block s(vi: spatial 4 = i, vk: reduce 8 = k) {
///         init {
///           d[vi] = bias[vi]
///         }
///         d[vi] = d[vi] + a[vi, vk]
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FuseReductionEpilogue {
    /// The block that reads the whole result of a reduction, element by element, as its only reader.
    pub block: BlockRv,
}

impl Primitive for FuseReductionEpilogue {
    const NAME: &'static str = "fuse_reduction_epilogue";

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.block(self.block)?;
        let epilogue = require_block(context.program, id)?.clone();
        let (producer, merged) = check(context.program, &epilogue)?;
        remove_block(&mut context.program.body, id);
        edit_block(&mut context.program.body, producer, &mut |block| *block = merged.clone());
        Ok(Outputs::new())
    }
}

/// The reduction that an epilogue follows, and what it becomes.
fn check(program: &Program, epilogue: &Block) -> Result<(BlockId, Block), ScheduleError> {
    let id = epilogue.id;
    let store = complete_store(epilogue).ok_or(ScheduleError::NotComplete(id))?;
    let mut refusal = ScheduleError::NotEpilogue(id);
    for buffer in reads(epilogue).into_iter().filter(|buffer| program.access(*buffer).is_none()) {
        let found = match sole_producer(program, epilogue, store.buffer, buffer, &reducing_store) {
            Ok(found) => found,
            Err(error) => {
                refusal = error;
                continue;
            }
        };
        let producer = require_block(program, found.producer)?;
        let part = reduction(producer).ok_or(ScheduleError::NotReduction(found.producer))?;
        let added = combined(&store.value, part.reducer, buffer).ok_or(ScheduleError::NotEpilogue(id))?;
        check_made_before(program, &added, producer)?;
        let value_of = |var: VarId| -> Option<Index> {
            match found.iters.iter().position(|iter| *iter == Some(var)) {
                Some(dimension) => Some(part.store.indices[dimension].clone()),
                None => epilogue.iters.iter().any(|iter| iter.var == var).then(|| Index::constant(0)),
            }
        };
        let added = substitute_expr(&added, &value_of);
        let target: Indices = store.indices.iter().map(|index| index.substitute(&value_of)).collect();
        let merged = merge(producer, &part, store.buffer, &target, &added)
            .ok_or(ScheduleError::NotReduction(found.producer))?;
        return Ok((found.producer, merged));
    }
    Err(refusal)
}

fn reducing_store(block: &Block) -> Option<&Store> {
    if is_reduction(block) { single_store(block) } else { None }
}

/// The operand that a value combines with the one element of `buffer`, by the operator of a reduction.
fn combined(value: &Expr, reducer: Reducer, buffer: BufferId) -> Option<Expr> {
    let ExprKind::Binary(op, left, right) = value.kind() else { return None };
    let is_result = |expr: &Expr| matches!(expr.kind(), ExprKind::Load(loaded, _) if *loaded == buffer);
    let other = match (is_result(left), is_result(right)) {
        (true, false) => right,
        (false, true) => left,
        _ => return None,
    };
    let mut inside = Vec::new();
    loads_in(other, &mut inside);
    let is_other = inside.iter().all(|access| access.buffer != buffer);
    (*op == reducer.op() && is_other).then(|| other.clone())
}

/// Checks that the operand of the epilogue is made before the reduction's nest begins, where the initial value is set.
fn check_made_before(program: &Program, added: &Expr, producer: &Block) -> Result<(), ScheduleError> {
    let mut read = Vec::new();
    loads_in(added, &mut read);
    let nest = crate::schedule::find::root_position(program, producer.id)?;
    for statement in &crate::schedule::find::statements(&program.body)[nest..] {
        for other in blocks(statement) {
            let made = crate::analysis::block::writes(other);
            if read.iter().any(|access| made.contains(&access.buffer)) {
                return Err(ScheduleError::ProducerOutside { block: producer.id, producer: other.id });
            }
        }
    }
    Ok(())
}

/// The reduction with another target, and with `added` combined into its initial value.
fn merge(
    producer: &Block,
    part: &Reduction<'_>,
    target: BufferId,
    indices: &Indices,
    added: &Expr,
) -> Option<Block> {
    let Some(Stmt::Store(init)) = &producer.init else { return None };
    if init.indices != part.store.indices {
        return None;
    }
    let op = part.reducer.op();
    let neutral = part.reducer.neutral(init.value.dtype());
    let first = if init.value == neutral {
        added.clone()
    } else {
        Expr::binary(op, init.value.clone(), added.clone())
    };
    let element = Expr::load(added.dtype(), target, indices.iter().cloned());
    let update = Expr::binary(op, element, part.value.clone());
    Some(Block {
        init: Some(Stmt::store(target, indices.iter().cloned(), first)),
        body: Stmt::store(target, indices.iter().cloned(), update),
        ..producer.clone()
    })
}

impl Schedule {
    /// Lets a reduction start from what a block combines its result with. See [`FuseReductionEpilogue`].
    ///
    /// # Errors
    /// When the block does not follow a reduction, or combines by another operator.
    pub fn fuse_reduction_epilogue(&mut self, block: BlockRv) -> Result<(), ScheduleError> {
        self.push(FuseReductionEpilogue { block }, None).map(drop)
    }
}

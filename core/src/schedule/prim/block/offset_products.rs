//! `offset_products`

use std::sync::Arc;

use crate::analysis::block::{Reducer, is_reduction, loads_in, reduction};
use crate::dtype::DType;
use crate::expr::{BinaryOp, Expr, ExprKind};
use crate::ids::{BlockId, BufferId, VarId};
use crate::index::Index;
use crate::program::{Buffer, Program, Scope, VariableKind};
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::check::buffer::{check_finished, check_written};
use crate::schedule::check::domain::check_loops;
use crate::schedule::edit::{edit_block, fresh_block_name, fresh_loop, insert_statement, nest};
use crate::schedule::find::{require_block, root_position};
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, Schedule, ScheduleError, Value};
use crate::stmt::{Annotations, Block, Iter, IterKind, Stmt, Store};
use crate::visit::{for_each_var, substitute_expr};

/// Adds a number to one factor of each product of a sum of integers, and subtracts the added amount from the initial value:
/// the number times the sum of the other factors, which a new block makes. Integers wrap, so that the result is the same.
/// Instructions that multiply unsigned by signed numbers can then multiply numbers of other signs.
///
/// ```text
/// before
/// kernel product(in a: i8[4, 8], in b: i8[8, 6], out c: i32[4, 6]) {
///   for i in 0..4 {
///     for j in 0..6 {
///       for k in 0..8 {
///         block c(vi: spatial 4 = i, vj: spatial 6 = j, vk: reduce 8 = k) {
///           init {
///             c[vi, vj] = 0i32
///           }
///           c[vi, vj] = c[vi, vj] + a[vi, vk] as i32 * b[vk, vj] as i32
///         }
///       }
///     }
///   }
/// }
/// apply
/// %0 = get_block "c"
/// %1 = offset_products %0, 0, 128
/// after
/// kernel product(in a: i8[4, 8], in b: i8[8, 6], out c: i32[4, 6]) {
///   buffer c_sums: i32[6] global
///   for vj in 0..6 {
///     for vk in 0..8 {
///       block c_sums(vj_1: spatial 6 = vj, vk_1: reduce 8 = vk) {
///         init {
///           c_sums[vj_1] = 0i32
///         }
///         c_sums[vj_1] = c_sums[vj_1] + b[vk_1, vj_1] as i32
///       }
///     }
///   }
///   for i in 0..4 {
///     for j in 0..6 {
///       for k in 0..8 {
///         block c(vi: spatial 4 = i, vj_2: spatial 6 = j, vk_2: reduce 8 = k) {
///           init {
///             c[vi, vj_2] = c_sums[vj_2] * -128i32
///           }
///           c[vi, vj_2] = c[vi, vj_2] + (a[vi, vk_2] as i32 + 128i32) * b[vk_2, vj_2] as i32
///         }
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffsetProducts {
    /// The block: a sum of products of two integers, alone in its loops.
    pub block: BlockRv,
    /// The factor that the number is added to: 0 or 1.
    pub factor: i64,
    /// The number.
    pub offset: i64,
}

impl Primitive for OffsetProducts {
    const NAME: &'static str = "offset_products";

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))?;
        visitor.visit(Argument::Number(&mut self.factor))?;
        visitor.visit(Argument::Number(&mut self.offset))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.block(self.block)?;
        let program = &mut *context.program;
        let block = require_block(program, id)?.clone();
        let (store, [first, second]) =
            integer_products(&block).ok_or(ScheduleError::NotIntegerProducts(id))?;
        let dtype = store.value.dtype();
        let (own, other) = match self.factor {
            0 => (first, second),
            1 => (second, first),
            _ => return Err(ScheduleError::BadDecision("the factor is 0 or 1")),
        };
        if i32::try_from(self.offset).is_err() || self.offset == 0 || self.offset == i64::from(i32::MIN) {
            return Err(ScheduleError::BadDecision("the number is not zero and one of 32 bits"));
        }
        check_loops(program, &block)?;
        let mut read = Vec::new();
        loads_in(other, &mut read);
        for access in &read {
            check_finished(program, &block, access.buffer)?;
            check_written(program, &block, access.buffer)?;
        }
        let position = root_position(program, id)?;

        let (sums, made, nest) = sums_of(program, &block, store.buffer, other);
        let correction = Expr::binary(BinaryOp::Mul, sums, Expr::int(dtype, -self.offset));
        let moved = Expr::binary(BinaryOp::Add, own.clone(), Expr::int(dtype, self.offset));
        let [first, second] = if self.factor == 0 { [&moved, other] } else { [other, &moved] };
        let product = Expr::binary(BinaryOp::Mul, first.clone(), second.clone());
        let element = Expr::load(dtype, store.buffer, store.indices.iter().cloned());
        let sum = Expr::binary(BinaryOp::Add, element, product);
        edit_block(&mut program.body, id, &mut |block| {
            if let Some(Stmt::Store(init)) = &mut block.init {
                let init = Arc::make_mut(init);
                let is_zero = init.value == Expr::zero(dtype);
                let correction = correction.clone();
                init.value = match is_zero {
                    true => correction,
                    false => Expr::binary(BinaryOp::Add, init.value.clone(), correction),
                };
            }
            block.body = Stmt::store(store.buffer, store.indices.iter().cloned(), sum.clone());
        });
        insert_statement(&mut program.body, position, nest);
        Ok(Outputs::from_iter([Value::Block(made)]))
    }
}

/// The store and the two factors of a sum of products of integers.
fn integer_products(block: &Block) -> Option<(&Store, [&Expr; 2])> {
    let found = reduction(block).filter(|found| found.reducer == Reducer::Sum && is_reduction(block))?;
    match found.value.kind() {
        ExprKind::Binary(BinaryOp::Mul, a, b) if matches!(found.value.dtype(), DType::I32 | DType::I64) => {
            Some((found.store, [a, b]))
        }
        _ => None,
    }
}

/// A nest that sums a factor over what a block reduces over, for each point of the block's other iterators that the factor
/// depends on. Gives the sum as the block reads it, the block that makes it, and the nest.
fn sums_of(program: &mut Program, block: &Block, output: BufferId, factor: &Expr) -> (Expr, BlockId, Stmt) {
    let mut mentioned = Vec::new();
    for_each_var(factor, &mut |var| mentioned.push(var));
    let is_needed = |iter: &&Iter| iter.kind == IterKind::Reduce || mentioned.contains(&iter.var);
    let originals: Vec<&Iter> = block.iters.iter().filter(is_needed).collect();
    let mut loops = Vec::new();
    let mut iters = Vec::new();
    for original in &originals {
        let name = program.variable(original.var).name.clone();
        let node = fresh_loop(program, &name, original.extent.clone());
        let var = program.add_variable(name, VariableKind::Iter);
        iters.push(Iter { var, binding: Index::var(node.var), ..(*original).clone() });
        loops.push(node);
    }
    let spatial = || iters.iter().zip(&originals).filter(|(iter, _)| iter.kind == IterKind::Spatial);
    let dtype = factor.dtype();
    let name = format!("{}_sums", program.buffer(output).name);
    let shape = spatial().map(|(iter, _)| iter.extent.clone()).collect();
    let buffer =
        program.add_buffer(Buffer { name: name.as_str().into(), dtype, shape, scope: Scope::Global });
    let renamed = |var: VarId| -> Option<Index> {
        let place = originals.iter().position(|iter| iter.var == var)?;
        Some(Index::var(iters[place].var))
    };
    let indices: Vec<Index> = spatial().map(|(iter, _)| Index::var(iter.var)).collect();
    let element = Expr::load(dtype, buffer, indices.iter().cloned());
    let update = Expr::binary(BinaryOp::Add, element, substitute_expr(factor, &renamed));
    let sum = Expr::load(dtype, buffer, spatial().map(|(_, original)| Index::var(original.var)));
    let id = program.fresh_block();
    let made = Block {
        id,
        name: fresh_block_name(program, &name),
        init: Some(Stmt::store(buffer, indices.iter().cloned(), Expr::zero(dtype))),
        body: Stmt::store(buffer, indices, update),
        iters: iters.clone(),
        guards: Vec::new(),
        annotations: Annotations::new(),
        location: None,
    };
    (sum, id, nest(loops, Stmt::Block(Arc::new(made))))
}

impl Schedule {
    /// Adds `offset` to factor 0 or 1 of each product of a sum of integers, takes away what that adds, and gives the block
    /// that sums up the other factors. See [`OffsetProducts`].
    ///
    /// # Errors
    /// [`BadDecision`](ScheduleError::BadDecision): there is no such factor, or the number is 0 or no number of 32 bits.
    /// [`NotIntegerProducts`](ScheduleError::NotIntegerProducts): the block is no sum of products of two integers.
    /// [`ProducerOutside`](ScheduleError::ProducerOutside): the other factor is not finished before the block's nest. Besides,
    /// when the block is not alone in its loops.
    pub fn offset_products(
        &mut self,
        block: BlockRv,
        factor: i64,
        offset: i64,
    ) -> Result<BlockRv, ScheduleError> {
        let made = self.push_many(OffsetProducts { block, factor, offset })?;
        Ok(BlockRv(made.start))
    }
}

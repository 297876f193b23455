//! `round_products`

use super::split_products::product_sum;
use crate::accuracy::{ROUNDED_FACTORS, rounded_to_tf32};
use crate::dtype::DType;
use crate::expr::{BinaryOp, Expr};
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::edit::edit_block;
use crate::schedule::find::require_block;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, Schedule, ScheduleError};
use crate::stmt::Stmt;

/// Rounds the `f32` factors of a sum of products to eleven binary digits, if the program's [accuracy](crate::accuracy) allows it.
/// Tensor cores multiply such factors.
///
/// ```text
/// before
/// kernel product(in a: f32[4, 8], in b: f32[8], out c: f32[4]) accuracy 0.001 {
///   for i in 0..4 {
///     for k in 0..8 {
///       block c(vi: spatial 4 = i, vk: reduce 8 = k) {
///         init {
///           c[vi] = 0.0
///         }
///         c[vi] = c[vi] + a[vi, vk] * b[vk]
///       }
///     }
///   }
/// }
/// apply
/// %0 = get_block "c"
/// round_products %0
/// after
/// kernel product(in a: f32[4, 8], in b: f32[8], out c: f32[4]) accuracy 0.001 {
///   for i in 0..4 {
///     for k in 0..8 {
///       block c(vi: spatial 4 = i, vk: reduce 8 = k) {
///         init {
///           c[vi] = 0.0
///         }
///         c[vi] = c[vi] + select(a[vi, vk] == a[vi, vk], bitcast<f32>(bitcast<i32>(a[vi, vk]) + 4096i32 & -8192i32), a[vi, vk]) * select(b[vk] == b[vk], bitcast<f32>(bitcast<i32>(b[vk]) + 4096i32 & -8192i32), b[vk])
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoundProducts {
    /// The block: a sum of products of two elements of type `f32`.
    pub block: BlockRv,
}

impl Primitive for RoundProducts {
    const NAME: &'static str = "round_products";

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.block(self.block)?;
        let program = &mut *context.program;
        let block = require_block(program, id)?.clone();
        let (store, factors) = product_sum(program, &block).ok_or(ScheduleError::NotProducts(id))?;
        if !program.accuracy.is_some_and(|accuracy| ROUNDED_FACTORS <= accuracy.relative()) {
            return Err(ScheduleError::BeyondAccuracy(id));
        }
        let [first, second] = factors.map(|(buffer, indices)| {
            rounded_to_tf32(&Expr::load(DType::F32, buffer, indices.iter().cloned()))
        });
        let product = Expr::binary(BinaryOp::Mul, first, second);
        let element = Expr::load(DType::F32, store.buffer, store.indices.iter().cloned());
        let sum = Expr::binary(BinaryOp::Add, element, product);
        edit_block(&mut program.body, id, &mut |block| {
            block.body = Stmt::store(store.buffer, store.indices.iter().cloned(), sum.clone());
        });
        Ok(Outputs::new())
    }
}

impl Schedule {
    /// Rounds the factors of a sum of products to the digits that tensor cores multiply. See [`RoundProducts`].
    ///
    /// # Errors
    /// [`NotProducts`](ScheduleError::NotProducts): the block is no sum of products of two `f32` elements.
    /// [`BeyondAccuracy`](ScheduleError::BeyondAccuracy): the program's accuracy does not allow it.
    pub fn round_products(&mut self, block: BlockRv) -> Result<(), ScheduleError> {
        self.push(RoundProducts { block }, None).map(drop)
    }
}

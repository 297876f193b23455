//! `split_products`

use crate::accuracy::PieceProducts;
use crate::analysis::block::{Reducer, reduction};
use crate::analysis::coverage::is_wholly_written;
use crate::analysis::scope::blocks;
use crate::dtype::DType;
use crate::expr::{BinaryOp, Expr, ExprKind, Indices};
use crate::ids::{BlockId, BufferId};
use crate::index::Index;
use crate::program::{Buffer, Program, Scope, VariableKind};
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::check::buffer::check_finished;
use crate::schedule::check::domain::check_loops;
use crate::schedule::edit::{copy_nest, edit_block, edit_block_stmt, edit_loop, fresh_block_name, fresh_loop, insert_statement, nest};
use crate::schedule::find::{require_block, single_block_chain};
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, Schedule, ScheduleError, Value};
use crate::stmt::{Block, Iter, IterKind, Stmt, Store};

/// Forms the `f32` products of a sum from products of `bf16` pieces, if the program's [accuracy](crate::accuracy) allows
/// it. Two new blocks split the factors into planes of pieces; a new reduction iterator runs through the pairs of
/// planes, small products first. The result is a sum of products of `bf16`, for which some machines have instructions.
///
/// ```text
/// before
/// kernel product(in a: f32[4, 8], in b: f32[8], out c: f32[4]) accuracy 0.0001 {
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
/// %1, %2 = split_products %0, 3
/// after
/// kernel product(in a: f32[4, 8], in b: f32[8], out c: f32[4]) accuracy 0.0001 {
///   buffer a_pieces: bf16[2, 4, 8] global
///   buffer b_pieces: bf16[2, 8] global
///   for a0 in 0..2 {
///     for a1 in 0..4 {
///       for a2 in 0..8 {
///         block a_pieces(v0: spatial 2 = a0, v1: spatial 4 = a1, v2: spatial 8 = a2) {
///           a_pieces[v0, v1, v2] = select(v0 < index(1), a[v1, v2] as bf16, (a[v1, v2] - a[v1, v2] as bf16 as f32) as bf16)
///         }
///       }
///     }
///   }
///   for a0_1 in 0..2 {
///     for a1_1 in 0..8 {
///       block b_pieces(v0_1: spatial 2 = a0_1, v1_1: spatial 8 = a1_1) {
///         b_pieces[v0_1, v1_1] = select(v0_1 < index(1), b[v1_1] as bf16, (b[v1_1] - b[v1_1] as bf16 as f32) as bf16)
///       }
///     }
///   }
///   for i in 0..4 {
///     for p in 0..3 {
///       for k in 0..8 {
///         block c(vi: spatial 4 = i, vp: reduce 3 = p, vk: reduce 8 = k) {
///           init {
///             c[vi] = 0.0
///           }
///           c[vi] = c[vi] + a_pieces[vp%2, vi, vk] as f32 * b_pieces[(-vp)/2 + 1, vk] as f32
///         }
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SplitProducts {
    /// The block: a sum of products of two elements of type `f32`, alone in its loops.
    pub block: BlockRv,
    /// How many products of pieces make one product: 1, 3, 6 or 9.
    pub products: i64,
}

impl Primitive for SplitProducts {
    const NAME: &'static str = "split_products";

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))?;
        visitor.visit(Argument::Number(&mut self.products))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.block(self.block)?;
        let program = &mut *context.program;
        let block = require_block(program, id)?.clone();
        let way = PieceProducts::of(self.products);
        let way = way.ok_or(ScheduleError::BadDecision("the number of products is 1, 3, 6 or 9"))?;
        let (store, factors) = product_sum(program, &block).ok_or(ScheduleError::NotProducts(id))?;
        if !program.accuracy.is_some_and(|accuracy| way.is_allowed(accuracy)) {
            return Err(ScheduleError::BeyondAccuracy(id));
        }
        check_loops(program, &block)?;
        let mut position = 0;
        for (buffer, _) in factors {
            position = check_finished(program, &block, buffer)?;
            if !is_wholly_written(program, buffer) {
                return Err(ScheduleError::PartlyWritten { block: id, buffer });
            }
        }

        let product = add_loop(program, &block, way.count)?;
        let pair = way.pair(&product);
        let mut made = Vec::new();
        let mut loads = Vec::new();
        for ((source, indices), piece) in factors.into_iter().zip([pair.0, pair.1]) {
            let (planes, stmt) = split(program, source, way.pieces);
            let place = std::iter::once(piece).chain(indices.iter().cloned());
            loads.push(Expr::cast(DType::F32, Expr::load(DType::BF16, planes, place)));
            made.push(Value::Block(blocks(&stmt)[0].id));
            insert_statement(&mut program.body, position + made.len() - 1, stmt);
        }
        let value = loads.into_iter().reduce(|a, b| Expr::binary(BinaryOp::Mul, a, b));
        let element = Expr::load(DType::F32, store.buffer, store.indices.iter().cloned());
        let sum = value.map(|value| Expr::binary(BinaryOp::Add, element, value));
        edit_block(&mut program.body, id, &mut |block| {
            if let Some(sum) = &sum {
                block.body = Stmt::store(store.buffer, store.indices.iter().cloned(), sum.clone());
            }
        });
        Ok(Outputs::from_iter(made))
    }
}

/// One factor: an element of a buffer.
pub(super) type Factor<'a> = (BufferId, &'a Indices);

/// The store and the two factors of a sum of products of `f32`.
pub(super) fn product_sum<'a>(program: &Program, block: &'a Block) -> Option<(&'a Store, [Factor<'a>; 2])> {
    let found = reduction(block).filter(|found| found.reducer == Reducer::Sum)?;
    let ExprKind::Binary(BinaryOp::Mul, a, b) = found.value.kind() else { return None };
    let factor = |value: &'a Expr| match value.kind() {
        ExprKind::Load(buffer, indices) if program.buffer(*buffer).dtype == DType::F32 => {
            Some((*buffer, indices))
        }
        _ => None,
    };
    Some((found.store, [factor(a)?, factor(b)?]))
}

/// Puts a loop that the block reduces over around the outermost of those; the answer is the block's new iterator.
fn add_loop(program: &mut Program, block: &Block, extent: i64) -> Result<Index, ScheduleError> {
    let reduces = |iter: &Iter| iter.kind == IterKind::Reduce;
    let is_reducing = |var| block.iters.iter().any(|iter| reduces(iter) && iter.binding.mentions(var));
    let chain = single_block_chain(program, block.id)?;
    let outermost = chain.iter().find(|node| is_reducing(node.var)).map(|node| node.id);
    let extent = Index::constant(extent);
    let node = fresh_loop(program, &"p".into(), extent.clone());
    let var = program.add_variable("vp", VariableKind::Iter);
    let made = Iter { var, extent, kind: IterKind::Reduce, binding: Index::var(node.var) };
    let place = block.iters.iter().position(reduces).unwrap_or(block.iters.len());
    edit_block(&mut program.body, block.id, &mut |block| block.iters.insert(place, made.clone()));
    let mut wrap = |stmt: &mut Stmt| *stmt = nest(vec![node.clone()], stmt.clone());
    match outermost {
        Some(outermost) => edit_loop(&mut program.body, outermost, &mut wrap),
        None => edit_block_stmt(&mut program.body, block.id, &mut wrap),
    };
    Ok(Index::var(var))
}

/// Makes planes of the pieces of a buffer's elements, the leading ones first; the answer is the buffer of the planes, and
/// the nest that makes them.
fn split(program: &mut Program, source: BufferId, pieces: i64) -> (BufferId, Stmt) {
    let original = program.buffer(source).clone();
    let name = format!("{}_pieces", original.name);
    let shape = std::iter::once(Index::constant(pieces)).chain(original.shape).collect();
    let planes = program.add_buffer(Buffer {
        name: name.as_str().into(),
        dtype: DType::BF16,
        shape,
        scope: Scope::Global,
    });
    let name = fresh_block_name(program, &name);
    let mut stmt = copy_nest(program, name, source, planes);
    let id: BlockId = blocks(&stmt)[0].id;
    edit_block(&mut stmt, id, &mut |block| {
        let point: Vec<Index> = block.iters.iter().map(|iter| Index::var(iter.var)).collect();
        let element = Expr::load(DType::F32, source, point[1..].iter().cloned());
        let value = piece(&element, &point[0], pieces);
        block.body = Stmt::store(planes, point, value);
    });
    (planes, stmt)
}

/// The piece of a value that a number chooses.
fn piece(value: &Expr, number: &Index, pieces: i64) -> Expr {
    let mut found = Vec::new();
    let mut rest = value.clone();
    for _ in 0..pieces {
        let rounded = Expr::cast(DType::BF16, rest.clone());
        rest = Expr::binary(BinaryOp::Sub, rest, Expr::cast(DType::F32, rounded.clone()));
        found.push(rounded);
    }
    let last = found.pop().expect("there is a piece");
    found.into_iter().enumerate().rev().fold(last, |later, (position, own)| {
        let behind = Expr::index(Index::constant(position as i64 + 1));
        let is_it = Expr::binary(BinaryOp::Lt, Expr::index(number.clone()), behind);
        Expr::select(is_it, own, later)
    })
}

impl Schedule {
    /// Forms the products of a sum from `products` products of `bf16` pieces, and gives the blocks that make the pieces of
    /// the first and of the second factor. See [`SplitProducts`].
    ///
    /// # Errors
    /// [`BadDecision`](ScheduleError::BadDecision): the number of products is not 1, 3, 6 or 9.
    /// [`NotProducts`](ScheduleError::NotProducts): the block is no sum of products of two `f32` elements.
    /// [`BeyondAccuracy`](ScheduleError::BeyondAccuracy): the program's accuracy does not allow it.
    /// [`ProducerOutside`](ScheduleError::ProducerOutside): an operand is not finished before the block's nest.
    /// [`PartlyWritten`](ScheduleError::PartlyWritten): elements of an operand may not be there, and planes hold all. Besides,
    /// when the block is not alone in its loops.
    pub fn split_products(
        &mut self,
        block: BlockRv,
        products: i64,
    ) -> Result<(BlockRv, BlockRv), ScheduleError> {
        let made = self.push_many(SplitProducts { block, products })?;
        Ok((BlockRv(made.start), BlockRv(made.start + 1)))
    }
}

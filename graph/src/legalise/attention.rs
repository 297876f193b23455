//! Attention as one kernel.
//!
//! Its blocks are the products of queries and keys, the softmax of each row of these, and the products with the values. Where a vector can
//! be filled with queries, their dimension lies innermost in all that is computed on the way, so that each step works on vectors of
//! queries: no step combines the lanes of a vector, and neither keys nor values are laid out anew. A schedule can then compute all
//! steps for a few queries after each other, and the matrix of all products is never in memory as a whole.

use tilewright_core::build::{KernelBuilder, UpdateOp, Value};
use tilewright_core::dtype::DType;
use tilewright_core::expr::{BinaryOp, UnaryOp};

use crate::legalise::emitter::{Emitter, Tensor, here};
use crate::legalise::matmul::Matrix;
use crate::legalise::operands::Operands;
use crate::legalise::pointwise::{broadcast_extents, broadcast_load};
use crate::legalise::scalar::{add, computing, divide, multiply, number, subtract};
use crate::legalise::{Order, Unsupported, unsupported};
use crate::symbolic::SymInt;
use crate::tensor::ElementType;

/// With fewer queries, vectors run along keys and values.
const LEAST_QUERIES: i64 = 8;

/// For each query, the mean of values weighted by the softmax of its products with keys.
pub(crate) fn attention(emitter: &mut Emitter, operands: &Operands<'_>) -> Result<Vec<Tensor>, Unsupported> {
    let attention = Attention::of(emitter, operands)?;
    let scores = attention.scores(emitter)?;
    let (weights, total) = attention.weights(emitter, &scores)?;
    let sums = attention.sums(emitter, &weights)?;
    Ok(vec![attention.means(emitter, &sums, &total)?])
}

struct Attention {
    queries: Tensor,
    keys: Matrix,
    values: Matrix,
    mask: Option<Tensor>,
    scale: f64,
    zero_if_masked: bool,
    zero_if_nan: bool,
    /// The extents of the stack that all inputs broadcast to.
    stack: Vec<SymInt>,
    /// The numbers of queries, of keys, and of elements of a key and of a value.
    rows: SymInt,
    columns: SymInt,
    depth: SymInt,
    width: SymInt,
    /// The type of what is computed on the way.
    element: ElementType,
    wide: DType,
    /// Whether the dimension of queries lies innermost in what is computed on the way.
    queries_innermost: bool,
}

/// The body of a loop nest: adds the computation at one place, whose indices it is given.
type Body<'b> = &'b mut dyn FnMut(&mut KernelBuilder, &[Value]);

impl Attention {
    fn of(emitter: &mut Emitter, operands: &Operands<'_>) -> Result<Self, Unsupported> {
        let (queries, keys) = (operands.tensor(emitter, 0)?, operands.tensor(emitter, 1)?);
        let (values, mask) = (operands.tensor(emitter, 2)?, operands.optional(emitter, 3)?);
        for tensor in [&queries, &keys, &values].into_iter().chain(&mask) {
            if tensor.element != queries.element || !tensor.dtype.is_float() {
                unsupported!("elements of types {} and {} meet", queries.element, tensor.element);
            }
        }
        if [&queries, &keys, &values].iter().any(|tensor| tensor.rank() < 2) {
            unsupported!("queries, keys and values must be stacks of matrices");
        }
        let wide = computing(queries.dtype);
        let Some(element) = ElementType::of_dtype(wide) else {
            unsupported!("elements of type {wide} have no kernel form")
        };
        let (query_stack, own) = queries.extents.split_at(queries.rank() - 2);
        let (rows, depth) = (own[0].clone(), own[1].clone());
        let keys = Matrix::new(keys, !operands.flag("keys_transposed"))?;
        let values = Matrix::new(values, false)?;
        let [(of_key, columns), (of_column, width)] = [&keys, &values].map(|matrix| {
            let (rows, columns) = matrix.extents(false);
            (rows.expect("a matrix has rows").clone(), columns.expect("a matrix has columns").clone())
        });
        if of_key != depth || of_column != columns {
            unsupported!("whether {of_key} is {depth}, and {of_column} is {columns}, depends on the call");
        }
        let mut stacks = vec![query_stack, keys.batch(), values.batch()];
        if let Some(mask) = &mask {
            let products = [rows.clone(), columns.clone()];
            let own = &mask.extents[mask.rank().saturating_sub(2)..];
            if broadcast_extents(&[own, &products])? != products {
                unsupported!("the mask is larger than the products");
            }
            stacks.push(&mask.extents[..mask.rank().saturating_sub(2)]);
        }
        let stack = broadcast_extents(&stacks)?;
        Ok(Attention {
            scale: operands.float("scale"),
            zero_if_masked: operands.flag("zero_if_masked"),
            zero_if_nan: operands.flag("zero_if_nan"),
            queries_innermost: emitter.at_most(&LEAST_QUERIES.into(), &rows)?,
            queries,
            keys,
            values,
            mask,
            stack,
            rows,
            columns,
            depth,
            width,
            element,
            wide,
        })
    }

    /// The order in memory of what is computed on the way, with a dimension for queries before the last one.
    fn order(&self, rank: usize) -> Order {
        let mut dimensions: Vec<usize> = (0..rank).collect();
        if self.queries_innermost {
            dimensions.swap(rank - 2, rank - 1);
        }
        Order::of(&dimensions)
    }

    /// A tensor of what is computed on the way, whose elements are `initial` at first, or nothing known.
    fn scratch(
        &self,
        emitter: &mut Emitter,
        extents: &[SymInt],
        initial: Option<f64>,
    ) -> Result<Tensor, Unsupported> {
        let initial = initial.map(|initial| number(self.wide, initial));
        emitter.ordered(self.element, extents, initial, self.order(extents.len()))
    }

    /// Loops over all places of such a tensor, nested as it lies in memory, and inside over `inner`, whose index comes last.
    fn nest(
        &self,
        emitter: &mut Emitter,
        extents: &[SymInt],
        inner: Option<&SymInt>,
        body: Body<'_>,
    ) -> Result<(), Unsupported> {
        let order = self.order(extents.len());
        let loops: Vec<usize> = order.dimensions().chain(inner.map(|_| extents.len())).collect();
        let all: Vec<SymInt> = extents.iter().chain(inner).cloned().collect();
        emitter.nest_in(&loops, &all, body)
    }

    /// The extents with one element for each query and each of `others`.
    fn each_query(&self, stack: &[SymInt], others: &SymInt) -> Vec<SymInt> {
        stack.iter().chain([&self.rows, others]).cloned().collect()
    }

    /// The extents with one element for each query. The last dimension keeps queries the one before the last.
    fn one_for_query(&self) -> Vec<SymInt> {
        self.each_query(&self.stack, &1.into())
    }

    /// The scaled queries.
    fn scaled(&self, emitter: &mut Emitter) -> Result<Tensor, Unsupported> {
        let scaled = self.scratch(emitter, &self.queries.extents, None)?;
        self.nest(emitter, &self.queries.extents, None, &mut |builder, indices| {
            let mut value = self.queries.at(builder, indices).cast(self.wide);
            if self.scale != 1.0 {
                value = multiply(&value, &number(self.wide, self.scale));
            }
            scaled.store(builder, indices, UpdateOp::Set, value, here!());
        })?;
        Ok(scaled)
    }

    /// The products of scaled queries and keys.
    fn scores(&self, emitter: &mut Emitter) -> Result<Tensor, Unsupported> {
        let scaled = self.scaled(emitter)?;
        let extents = self.each_query(&self.stack, &self.columns);
        let scores = self.scratch(emitter, &extents, Some(0.0))?;
        self.nest(emitter, &extents, Some(&self.depth), &mut |builder, indices| {
            let [stack @ .., row, column, depth] = indices else { unreachable!("there are three indices") };
            let of_query: Vec<Value> = stack.iter().chain([row, depth]).cloned().collect();
            let query = broadcast_load(builder, &scaled, &of_query);
            let key = self.keys.indices(stack, Some(depth), Some(column));
            let key = self.keys.tensor.at(builder, &key).cast(self.wide);
            let place = &indices[..indices.len() - 1];
            scores.store(builder, place, UpdateOp::Add, multiply(&key, &query), here!());
        })?;
        Ok(scores)
    }

    /// The mask. One with an element for each product lies in memory as the products do.
    fn mask(&self, emitter: &mut Emitter) -> Result<Option<Tensor>, Unsupported> {
        let Some(mask) = &self.mask else { return Ok(None) };
        let rank = mask.rank();
        let is_whole = rank >= 2 && mask.extents[rank - 2..].iter().all(|extent| !extent.is(1));
        if !self.queries_innermost || !is_whole {
            return Ok(Some(mask.clone()));
        }
        let own = self.scratch(emitter, &mask.extents, None)?;
        self.nest(emitter, &mask.extents, None, &mut |builder, indices| {
            let value = mask.at(builder, indices).cast(self.wide);
            own.store(builder, indices, UpdateOp::Set, value, here!());
        })?;
        Ok(Some(own))
    }

    /// The powers of masked scores relative to the largest of each query, and their sums.
    fn weights(&self, emitter: &mut Emitter, scores: &Tensor) -> Result<(Tensor, Tensor), Unsupported> {
        let mask = self.mask(emitter)?;
        let masked = |builder: &KernelBuilder, indices: &[Value]| {
            let score = scores.at(builder, indices);
            match &mask {
                None => score,
                Some(mask) => add(&score, &broadcast_load(builder, mask, indices).cast(self.wide)),
            }
        };
        let largest = self.scratch(emitter, &self.one_for_query(), Some(f64::NEG_INFINITY))?;
        self.nest(emitter, &scores.extents, None, &mut |builder, indices| {
            let value = masked(builder, indices);
            largest.store(builder, &of_query(indices), UpdateOp::Max, value, here!());
        })?;
        let weights = self.scratch(emitter, &scores.extents, None)?;
        self.nest(emitter, &scores.extents, None, &mut |builder, indices| {
            let mut most = largest.at(builder, &of_query(indices));
            if self.zero_if_masked {
                let none = most.binary(BinaryOp::Eq, number(self.wide, f64::NEG_INFINITY));
                most = none.select(number(self.wide, 0.0), most);
            }
            let power = subtract(&masked(builder, indices), &most).unary(UnaryOp::Exp);
            weights.store(builder, indices, UpdateOp::Set, power, here!());
        })?;
        let total = self.scratch(emitter, &self.one_for_query(), Some(0.0))?;
        self.nest(emitter, &scores.extents, None, &mut |builder, indices| {
            let power = weights.at(builder, indices);
            total.store(builder, &of_query(indices), UpdateOp::Add, power, here!());
        })?;
        Ok((weights, total))
    }

    /// The sums of weighted values.
    fn sums(&self, emitter: &mut Emitter, weights: &Tensor) -> Result<Tensor, Unsupported> {
        let extents = self.each_query(&self.stack, &self.width);
        let sums = self.scratch(emitter, &extents, Some(0.0))?;
        self.nest(emitter, &extents, Some(&self.columns), &mut |builder, indices| {
            let [stack @ .., row, width, column] = indices else { unreachable!("there are three indices") };
            let of_weight: Vec<Value> = stack.iter().chain([row, column]).cloned().collect();
            let weight = weights.at(builder, &of_weight);
            let value = self.values.indices(stack, Some(column), Some(width));
            let value = self.values.tensor.at(builder, &value).cast(self.wide);
            let place = &indices[..indices.len() - 1];
            sums.store(builder, place, UpdateOp::Add, multiply(&value, &weight), here!());
        })?;
        Ok(sums)
    }

    /// The sums divided by those of the weights.
    fn means(&self, emitter: &mut Emitter, sums: &Tensor, total: &Tensor) -> Result<Tensor, Unsupported> {
        let Tensor { element, dtype, .. } = self.queries;
        emitter.compute(element, &sums.extents, &mut |builder, indices| {
            let mut total = total.at(builder, &of_query(indices));
            if self.zero_if_masked {
                let none = total.binary(BinaryOp::Eq, number(self.wide, 0.0));
                total = none.select(number(self.wide, 1.0), total);
            }
            let mut mean = divide(&sums.at(builder, indices), &total);
            if self.zero_if_nan {
                let is_nan = total.binary(BinaryOp::Ne, total.clone());
                mean = is_nan.select(number(self.wide, 0.0), mean);
            }
            mean.cast(dtype)
        })
    }
}

/// The place of what is computed once for a query, from that of one of several elements.
fn of_query(indices: &[Value]) -> Vec<Value> {
    let mut place = indices.to_vec();
    place[indices.len() - 1] = Value::int(0);
    place
}

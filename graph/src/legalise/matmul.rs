//! Products of matrices.

use tilewright_core::build::{KernelBuilder, UpdateOp, Value};

use crate::legalise::emitter::{Bound, Emitter, Tensor, here, nest};
use crate::legalise::operands::Operands;
use crate::legalise::pointwise::{broadcast, broadcast_extents};
use crate::legalise::scalar::{add, computing, multiply, number};
use crate::legalise::{Unsupported, unsupported};
use crate::symbolic::SymInt;
use crate::tensor::ElementType;

type Emitted = Result<Vec<Tensor>, Unsupported>;

/// An operand of a product: its dimensions for batch, rows and columns. A vector has no rows or no columns.
pub(super) struct Matrix {
    pub(super) tensor: Tensor,
    /// How many of its dimensions are those of the batch.
    batch: usize,
    /// Whether rows and columns are exchanged.
    transposed: bool,
    /// Whether it is a vector: a row on the left, a column on the right.
    pub(super) vector: bool,
}

impl Matrix {
    pub(super) fn new(tensor: Tensor, transposed: bool) -> Result<Self, Unsupported> {
        match tensor.rank() {
            0 => unsupported!("scalars have no matrix product"),
            1 => Ok(Matrix { tensor, batch: 0, transposed: false, vector: true }),
            rank => Ok(Matrix { tensor, batch: rank - 2, transposed, vector: false }),
        }
    }

    pub(super) fn batch(&self) -> &[SymInt] {
        &self.tensor.extents[..self.batch]
    }

    /// The extents of rows and columns; `None` for the dimension that a vector lacks. `left` says on which side it stands.
    pub(super) fn extents(&self, left: bool) -> (Option<&SymInt>, Option<&SymInt>) {
        let own = &self.tensor.extents[self.batch..];
        match (own, self.transposed) {
            ([length], _) if left => (None, Some(length)),
            ([length], _) => (Some(length), None),
            (own, false) => (Some(&own[0]), Some(&own[1])),
            (own, true) => (Some(&own[1]), Some(&own[0])),
        }
    }

    /// The indices of an element.
    pub(super) fn indices(&self, batch: &[Value], row: Option<&Value>, column: Option<&Value>) -> Vec<Value> {
        let own = &batch[batch.len() - self.batch..];
        let index = |(extent, index): (&SymInt, &Value)| {
            if extent.is(1) { Value::int(0) } else { index.clone() }
        };
        let mut indices: Vec<Value> = self.batch().iter().zip(own).map(index).collect();
        let mut inner: Vec<Value> = row.into_iter().chain(column).cloned().collect();
        if self.transposed {
            inner.reverse();
        }
        indices.extend(inner);
        indices
    }
}

/// A product of stacks of matrices that broadcast.
pub(crate) fn matmul(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let left = Matrix::new(operands.tensor(emitter, 0)?, false)?;
    let right = Matrix::new(operands.tensor(emitter, 1)?, false)?;
    Ok(vec![multiply_matrices(emitter, &left, &right)?])
}

/// `alpha · A · B + beta · C`, with operands that may be transposed.
pub(crate) fn gemm(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let (a, b) = (operands.tensor(emitter, 0)?, operands.tensor(emitter, 1)?);
    if a.rank() != 2 || b.rank() != 2 || !a.dtype.is_float() {
        unsupported!("only matrices of floats have a kernel form");
    }
    let (alpha, beta) = (operands.float("alpha"), operands.float("beta"));
    let left = Matrix::new(a, operands.flag("transA"))?;
    let right = Matrix::new(b, operands.flag("transB"))?;
    let product = multiply_matrices(emitter, &left, &right)?;
    let (dtype, element, extents) = (product.dtype, product.element, product.extents.clone());
    let wide = computing(dtype);
    let scale = move |value: &Value, factor: f64| {
        let value = value.cast(wide);
        if factor == 1.0 { value } else { multiply(&value, &number(wide, factor)) }
    };
    let Some(addend) = operands.optional(emitter, 2)? else {
        if alpha == 1.0 {
            return Ok(vec![product]);
        }
        let scaled = |values: &[Value]| scale(&values[0], alpha).cast(dtype);
        return Ok(vec![broadcast(emitter, &[product], element, &scaled)?]);
    };
    if broadcast_extents(&[&extents, &addend.extents])? != extents {
        unsupported!("the addend is larger than the product");
    }
    let sum = |values: &[Value]| add(&scale(&values[0], alpha), &scale(&values[1], beta)).cast(dtype);
    Ok(vec![broadcast(emitter, &[product, addend], element, &sum)?])
}

/// A product with scaling, of which each operand may be transposed.
pub(crate) fn fused(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    if operands.flag("transBatchA") || operands.flag("transBatchB") {
        unsupported!("a transposed batch has no kernel form");
    }
    let alpha = operands.float("alpha");
    let left = Matrix::new(operands.tensor(emitter, 0)?, operands.flag("transA"))?;
    let right = Matrix::new(operands.tensor(emitter, 1)?, operands.flag("transB"))?;
    if !left.tensor.dtype.is_float() {
        unsupported!("only floats have a kernel form");
    }
    let product = multiply_matrices(emitter, &left, &right)?;
    let (dtype, element) = (product.dtype, product.element);
    let wide = computing(dtype);
    let scaled = |values: &[Value]| multiply(&values[0].cast(wide), &number(wide, alpha)).cast(dtype);
    Ok(vec![broadcast(emitter, &[product], element, &scaled)?])
}

fn multiply_matrices(emitter: &mut Emitter, left: &Matrix, right: &Matrix) -> Result<Tensor, Unsupported> {
    let element = left.tensor.element;
    if element != right.tensor.element || element == ElementType::Bool {
        unsupported!("elements of types {element} and {} are multiplied", right.tensor.element);
    }
    let wide = computing(left.tensor.dtype);
    MatrixProduct::new(left, right)?.sums(emitter, element, &|value| value.cast(wide))
}

/// The product of two stacks of matrices that broadcast.
pub(super) struct MatrixProduct<'m> {
    left: &'m Matrix,
    right: &'m Matrix,
    pub(super) extents: Vec<SymInt>,
    /// How many dimensions are those of the batch.
    batch: usize,
    /// The number of products in a sum.
    pub(super) depth: SymInt,
}

/// An element of a product: the indices of its batch, its row and its column, where it has these.
pub(super) type Place<'v> = (&'v [Value], Option<&'v Value>, Option<&'v Value>);

impl<'m> MatrixProduct<'m> {
    pub(super) fn new(left: &'m Matrix, right: &'m Matrix) -> Result<Self, Unsupported> {
        let ((rows, depth), (right_depth, columns)) = (left.extents(true), right.extents(false));
        let (depth, right_depth) =
            (depth.expect("a row has a length"), right_depth.expect("a column has a length"));
        if depth != right_depth {
            unsupported!("whether {depth} columns and {right_depth} rows are as many depends on the call");
        }
        let mut extents = broadcast_extents(&[left.batch(), right.batch()])?;
        let batch = extents.len();
        extents.extend(rows.into_iter().chain(columns).cloned());
        Ok(MatrixProduct { left, right, extents, batch, depth: depth.clone() })
    }

    /// The place of an element, from its indices.
    pub(super) fn place<'v>(&self, indices: &'v [Value]) -> Place<'v> {
        let (batch, inner) = indices.split_at(self.batch);
        let row = (!self.left.vector).then(|| &inner[0]);
        let column = (!self.right.vector).then(|| &inner[inner.len() - 1]);
        (batch, row, column)
    }

    /// The tensor of sums, whose factors `widen` converts.
    pub(super) fn sums(
        &self,
        emitter: &mut Emitter,
        element: ElementType,
        widen: &dyn Fn(&Value) -> Value,
    ) -> Result<Tensor, Unsupported> {
        let depth = emitter.bounds(std::slice::from_ref(&self.depth))?;
        let product = |builder: &KernelBuilder, indices: &[Value], depth: &[Value]| {
            let (batch, row, column) = self.place(indices);
            let (left, right) = (self.left, self.right);
            let x = left.tensor.at(builder, &left.indices(batch, row, Some(&depth[0])));
            let y = right.tensor.at(builder, &right.indices(batch, Some(&depth[0]), column));
            multiply(&widen(&x), &widen(&y))
        };
        sum_of_products(emitter, element, &self.extents, &depth, &product)
    }
}

/// A product, from the indices of its sum and of the loops that it is summed over.
type Product<'a> = &'a dyn Fn(&KernelBuilder, &[Value], &[Value]) -> Value;

/// A tensor of sums over some loops.
pub(super) fn sum_of_products(
    emitter: &mut Emitter,
    element: ElementType,
    extents: &[SymInt],
    depth: &[Bound],
    product: Product<'_>,
) -> Result<Tensor, Unsupported> {
    let Some(dtype) = element.dtype() else { unsupported!("elements of type {element} are not summed up") };
    let wide = computing(dtype);
    if wide == dtype {
        let result = emitter.local(element, extents, Some(number(dtype, 0.0)))?;
        emitter.nest(extents, &mut |builder, indices| {
            nest(builder, depth, &mut Vec::new(), &mut |builder, depth| {
                let term = product(builder, indices, depth);
                result.store(builder, indices, UpdateOp::Add, term, here!());
            });
        })?;
        return Ok(result);
    }
    let result = emitter.local(element, extents, None)?;
    emitter.nest(extents, &mut |builder, indices| {
        let sum = builder.accumulator("sum", number(wide, 0.0), here!());
        nest(builder, depth, &mut Vec::new(), &mut |builder, depth| {
            builder.update(sum, UpdateOp::Add, product(builder, indices, depth), here!());
        });
        result.store(builder, indices, UpdateOp::Set, builder.read(sum).cast(dtype), here!());
    })?;
    Ok(result)
}

//! Products of matrices of integers.

use tilewright_core::build::{KernelBuilder, Value};
use tilewright_core::dtype::DType;

use crate::legalise::emitter::{Emitter, Tensor};
use crate::legalise::matmul::{Matrix, MatrixProduct, sum_of_products};
use crate::legalise::operands::Operands;
use crate::legalise::quantise::convert::{Rescale, require_narrow_sums, rescale, scales_of_sums};
use crate::legalise::quantise::parameter::Parameter;
use crate::legalise::scalar::{multiply, subtract};
use crate::legalise::{Unsupported, unsupported};
use crate::symbolic::SymInt;
use crate::tensor::ElementType;

type Emitted = Result<Vec<Tensor>, Unsupported>;

/// An integer as a term of a sum.
pub(super) fn wide(value: &Value) -> Value {
    value.cast(DType::I32)
}

/// Requires bytes with or without sign.
pub(super) fn require_bytes(tensors: [&Tensor; 2]) -> Result<(), Unsupported> {
    for tensor in tensors {
        if !matches!(tensor.dtype, DType::U8 | DType::I8) {
            unsupported!("only bytes have a kernel form, not elements of type {}", tensor.element);
        }
    }
    Ok(())
}

/// Sums of products of the integers of two tensors less their zero points.
pub(crate) fn matmul_integer(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let left = Matrix::new(operands.tensor(emitter, 0)?, false)?;
    let right = Matrix::new(operands.tensor(emitter, 1)?, false)?;
    Ok(vec![centred_product(emitter, operands, [&left, &right], [2, 3])?])
}

/// Inputs: a, its scale and zero point, b, its scale and zero point, scale and zero point of the result.
pub(crate) fn qlinear_matmul(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let left = Matrix::new(operands.tensor(emitter, 0)?, false)?;
    let right = Matrix::new(operands.tensor(emitter, 3)?, false)?;
    let depth = left.extents(true).1.and_then(SymInt::as_constant);
    require_narrow_sums(depth)?;
    let relative = scales_of_sums(emitter, operands, [1, 4, 6])?;
    let sums = centred_product(emitter, operands, [&left, &right], [2, 5])?;
    // The scales of a left operand belong to its rows.
    let rows = if left.vector || right.vector { -1 } else { -2 };
    let how = Rescale { scales: [(1, rows), (4, -1), (6, -1)], relative, zero: 7, bias: None };
    rescale(emitter, operands, &sums, how)
}

/// Sums of products of the integers of two tensors less their zero points, which are inputs at two places.
fn centred_product(
    emitter: &mut Emitter,
    operands: &Operands<'_>,
    [left, right]: [&Matrix; 2],
    zeros: [usize; 2],
) -> Result<Tensor, Unsupported> {
    require_bytes([&left.tensor, &right.tensor])?;
    // The zero points of a left operand belong to its rows, those of a right one to its columns.
    let mut zero =
        |place: usize, matrix: &Matrix, dimension: i64| -> Result<Option<Parameter>, Unsupported> {
            if operands.is_zero(place) {
                return Ok(None);
            }
            let Some(zero) = operands.optional(emitter, place)? else { return Ok(None) };
            let dimension = if matrix.vector { -1 } else { dimension };
            Parameter::new(zero, &matrix.tensor.extents, dimension, 0).map(Some)
        };
    let (left_zero, right_zero) = (zero(zeros[0], left, -2)?, zero(zeros[1], right, -1)?);
    let product = MatrixProduct::new(left, right)?;
    // `Σa` for each row is needed for the zero points of columns, and `Σ(b - q)` for each column for those of rows; ahead of the products, so that what
    // follows these can be computed tile by tile.
    let folds = left_zero.as_ref().filter(|zero| zero.is_one() && operands.is_known(zeros[0]));
    let of_rows = match &right_zero {
        None => None,
        Some(_) => Some(sum_up(emitter, left, true, &|_, _, value| value)?),
    };
    let of_columns = match &left_zero {
        None => None,
        Some(_) => Some(sum_up(emitter, right, false, &|builder, indices, mut value| {
            if let Some(zero) = &right_zero {
                value = subtract(&value, &wide(&zero.at(builder, indices)));
            }
            match folds {
                Some(zero) => multiply(&wide(&zero.at(builder, &[])), &value),
                None => value,
            }
        })?),
    };
    let products = product.sums(emitter, ElementType::I32, &wide)?;
    if left_zero.is_none() && right_zero.is_none() {
        return Ok(products);
    }
    emitter.compute(ElementType::I32, &product.extents, &mut |builder, indices| {
        let (batch, row, column) = product.place(indices);
        let origin = Value::int(0);
        let mut sum = products.at(builder, indices);
        if let (Some(zero), Some(sums)) = (&right_zero, &of_rows) {
            let zero = wide(&zero.at(builder, &right.indices(batch, Some(&origin), column)));
            sum = subtract(&sum, &multiply(&zero, &sums.at(builder, &kept(left, batch, row))));
        }
        if let (Some(zero), Some(sums)) = (&left_zero, &of_columns) {
            let mut term = sums.at(builder, &kept(right, batch, column));
            if folds.is_none() {
                let zero = wide(&zero.at(builder, &left.indices(batch, row, Some(&origin))));
                term = multiply(&zero, &term);
            }
            sum = subtract(&sum, &term);
        }
        sum
    })
}

/// The indices of an operand's dimensions but for the one that is summed up over.
fn kept(matrix: &Matrix, batch: &[Value], other: Option<&Value>) -> Vec<Value> {
    // The last index is that of the row or of the column.
    let own = &batch[batch.len() - matrix.batch().len()..];
    let index = |(extent, index): (&SymInt, &Value)| if extent.is(1) { Value::int(0) } else { index.clone() };
    matrix.batch().iter().zip(own).map(index).chain(other.cloned()).collect()
}

/// A term of a sum, made of the integer at some indices of an operand.
type Term<'a> = &'a dyn Fn(&KernelBuilder, &[Value], Value) -> Value;

/// The sums of an operand's rows (`rows`) or columns.
fn sum_up(emitter: &mut Emitter, matrix: &Matrix, rows: bool, term: Term<'_>) -> Result<Tensor, Unsupported> {
    let (first, second) = matrix.extents(rows);
    let (other, depth) = if rows { (first, second) } else { (second, first) };
    let depth = depth.expect("an operand has products to sum up");
    let mut extents = matrix.batch().to_vec();
    let batch = extents.len();
    extents.extend(other.cloned());
    let bounds = emitter.bounds(std::slice::from_ref(depth))?;
    sum_of_products(emitter, ElementType::I32, &extents, &bounds, &|builder, indices, depth| {
        let (batch, other) = indices.split_at(batch);
        let (other, depth) = (other.first(), Some(&depth[0]));
        let (row, column) = if rows { (other, depth) } else { (depth, other) };
        let indices = matrix.indices(batch, row, column);
        term(builder, &indices, wide(&matrix.tensor.at(builder, &indices)))
    })
}

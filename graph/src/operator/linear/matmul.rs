//! Products of matrices.

use crate::deduce;
use crate::legalise::matmul;
use crate::operator::attribute::{FloatOr, IntOr};
use crate::operator::evaluate::{one, refuse};
use crate::operator::select::transpose;
use crate::operator::{Arguments, Fault, Operator, ResultOrder, Value};
use crate::tensor::{HostTensor, Number, Places, Wide, broadcast_shapes, count, with_number};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("matmul", "MatMul", |a| {
        let (x, y) = (a.tensor(0)?, a.tensor(1)?);
        with_number!(x.element(), T => one(matmul::<T>(x, y)?), else refuse!("expected numbers, found {}", x.element()))
    }).legalise(matmul::matmul)
        .result_order(ResultOrder::Rows)
    .deduce(deduce::matmul)
    .inputs(2, 2),
    Operator::new("gemm", "Gemm", gemm).legalise(matmul::gemm)
        .result_order(ResultOrder::Rows)
    .deduce(deduce::gemm).inputs(2, 3).attributes(&[
        ("alpha", FloatOr(1.0)),
        ("beta", FloatOr(1.0)),
        ("transA", IntOr(0)),
        ("transB", IntOr(0)),
    ]),
    Operator::new("fused_matmul", "FusedMatMul", fused_matmul).legalise(matmul::fused)
        .result_order(ResultOrder::Rows)
    .deduce(deduce::fused_matmul).inputs(2, 2).domain("com.microsoft").attributes(&[
        ("alpha", FloatOr(1.0)),
        ("transA", IntOr(0)),
        ("transB", IntOr(0)),
        ("transBatchA", IntOr(0)),
        ("transBatchB", IntOr(0)),
    ]),
];

/// The product of two stacks of matrices, before it is rounded. A vector on the left is a row, one on the right a column,
/// and the dimension that this adds is absent from the result.
pub(in crate::operator) fn matmul_wide<W: Wide>(
    (left, left_shape): (&[W], &[usize]),
    (right, right_shape): (&[W], &[usize]),
) -> Result<(Vec<W>, Vec<usize>), Fault> {
    let (row, column) = (left_shape.len() == 1, right_shape.len() == 1);
    let left_matrix: Vec<usize> = if row { vec![1, left_shape[0]] } else { left_shape.to_vec() };
    let right_matrix: Vec<usize> = if column { vec![right_shape[0], 1] } else { right_shape.to_vec() };
    let ([left_batch @ .., m, k], [right_batch @ .., right_k, n]) = (&left_matrix[..], &right_matrix[..])
    else {
        refuse!("scalars have no matrix product")
    };
    if k != right_k {
        refuse!(
            "shapes {left_shape:?} and {right_shape:?} have no matrix product: {k} columns, {right_k} rows"
        );
    }
    let batch = broadcast_shapes(left_batch, right_batch)?;
    let full: Vec<usize> = batch.iter().chain([m, n]).copied().collect();
    let mut product = vec![W::default(); count(&full)?];
    let places = Places::broadcast(&batch, left_batch).zip(Places::broadcast(&batch, right_batch));
    if m * n > 0 {
        for (result, (left_place, right_place)) in product.chunks_exact_mut(m * n).zip(places) {
            let left_matrix = &left[left_place * m * k..(left_place + 1) * m * k];
            let right_matrix = &right[right_place * k * n..(right_place + 1) * k * n];
            multiply_matrices(left_matrix, right_matrix, result, (*k, *n));
        }
    }
    let mut shape = batch;
    if !row {
        shape.push(*m);
    }
    if !column {
        shape.push(*n);
    }
    Ok((product, shape))
}

/// Adds the product of two matrices of `k` columns and rows to `result`, of `n` columns.
fn multiply_matrices<W: Wide>(left: &[W], right: &[W], result: &mut [W], (k, n): (usize, usize)) {
    if k == 0 {
        return;
    }
    for (left_row, result_row) in left.chunks_exact(k).zip(result.chunks_exact_mut(n)) {
        for (&factor, right_row) in left_row.iter().zip(right.chunks_exact(n)) {
            for (sum, &other) in result_row.iter_mut().zip(right_row) {
                *sum = sum.plus(factor.times(other));
            }
        }
    }
}

fn widen<T: Number>(tensor: &HostTensor) -> Result<Vec<T::Wide>, Fault> {
    Ok(tensor.expect::<T>()?.iter().map(|x| x.widen()).collect())
}

fn matmul<T: Number>(x: &HostTensor, y: &HostTensor) -> Result<HostTensor, Fault> {
    let (product, shape) = matmul_wide((&widen::<T>(x)?[..], x.shape()), (&widen::<T>(y)?[..], y.shape()))?;
    Ok(HostTensor::new(&shape, product.into_iter().map(T::narrow).collect())?)
}

fn gemm(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let turned = |place: usize, flag: &str| {
        let tensor = arguments.tensor(place)?;
        if tensor.rank() != 2 {
            refuse!("expected matrices, found shape {:?}", tensor.shape());
        }
        if arguments.flag(flag) { transpose(tensor, &[1, 0]) } else { Ok(tensor.clone()) }
    };
    let (a, b) = (turned(0, "transA")?, turned(1, "transB")?);
    let (alpha, beta) = (arguments.float_or_default("alpha"), arguments.float_or_default("beta"));
    with_number!(a.element(), T => {
        let (product, shape) = matmul_wide((&widen::<T>(&a)?[..], a.shape()), (&widen::<T>(&b)?[..], b.shape()))?;
        let addend = match arguments.optional(2)? {
            None => vec![0.0; product.len()],
            Some(c) => {
                if broadcast_shapes(&shape, c.shape()).as_ref() != Ok(&shape) {
                    refuse!("an addend of shape {:?} does not broadcast to {shape:?}", c.shape());
                }
                let elements = c.expect::<T>()?;
                Places::broadcast(&shape, c.shape()).map(|place| elements[place].to_f64()).collect()
            }
        };
        let element = |(product, addend): (&<T as Number>::Wide, f64)| T::from_f64(alpha * product.approximate() + beta * addend);
        one(HostTensor::new(&shape, product.iter().zip(addend).map(element).collect())?)
    }, else refuse!("expected numbers, found {}", a.element()))
}

/// A product with scaling, of which each operand may be transposed. `transBatch` means that the rows are the first
/// dimension, before those of the batch.
fn fused_matmul(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let turned = |place: usize, rows_first: &str, flag: &str| {
        let tensor = arguments.tensor(place)?;
        let rank = tensor.rank();
        let mut order: Vec<usize> = (0..rank).collect();
        if arguments.flag(rows_first) && rank > 2 {
            order[..rank - 1].rotate_left(1);
        }
        if arguments.flag(flag) && rank > 1 {
            order.swap(rank - 2, rank - 1);
        }
        transpose(tensor, &order)
    };
    let (a, b) = (turned(0, "transBatchA", "transA")?, turned(1, "transBatchB", "transB")?);
    let alpha = arguments.float_or_default("alpha");
    with_number!(a.element(), T => {
        let (product, shape) = matmul_wide((&widen::<T>(&a)?[..], a.shape()), (&widen::<T>(&b)?[..], b.shape()))?;
        let scaled = product.into_iter().map(|product| T::from_f64(alpha * product.approximate())).collect();
        one(HostTensor::new(&shape, scaled)?)
    }, else refuse!("expected numbers, found {}", a.element()))
}

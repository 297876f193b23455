//! Products with matrices of quantised blocks, as graphs of kernels.
//!
//! `is_many` says that there are many rows: the whole matrix then becomes numbers first, once for all of them.

use tilewright::prelude::*;

use crate::block::integer;
use crate::block::kernels;
use crate::block::matrix::{Matrix, Planes, Q4K};
use crate::block::numbers;
use crate::block::pack::LANES;

/// `x · Wᵀ`, in panels.
#[tensor_graph]
pub(crate) fn product(
    matrix: &Matrix,
    is_many: bool,
    x: &Tensor<f32, R, { matrix.columns() }>,
) -> Tensor<f32, R, { matrix.panels() }, { LANES }> {
    match &matrix.planes {
        Planes::Integers(planes) => {
            let blocks = matrix.columns() / 32;
            let (integers, steps, sums) = integer::kernels::quantise_rows(x.reshape([R, blocks, 32]));
            let integers = integers.reshape([R, matrix.columns()]);
            integer::product(planes, is_many, &integers, &steps, &sums)
        }
        Planes::Single(numbers) => kernels::product_f32(x, numbers),
        _ if is_many => product_of_numbers(matrix, x),
        _ => product_of_blocks(matrix, x),
    }
}

/// `x · Wᵀ` with the whole matrix as numbers, which memory holds for as long as the product takes.
#[tensor_graph]
fn product_of_numbers(
    matrix: &Matrix,
    x: &Tensor<f32, R, { matrix.columns() }>,
) -> Tensor<f32, R, { matrix.panels() }, { LANES }> {
    let (panels, columns) = (matrix.panels(), matrix.columns());
    let numbers = match &matrix.planes {
        Planes::Half(halves) => numbers::numbers_f16(halves).reshape([panels, columns, LANES]),
        Planes::Q4_0 { quants, scales } => {
            numbers::numbers_q4_0(quants, scales).reshape([panels, columns, LANES])
        }
        Planes::Q4_1 { quants, scales, minima } => {
            numbers::numbers_q4_1(quants, scales, minima).reshape([panels, columns, LANES])
        }
        Planes::Q8_0 { quants, scales } => {
            numbers::numbers_q8_0(quants, scales).reshape([panels, columns, LANES])
        }
        Planes::Q4K(planes) => {
            let Q4K { quants, factors, least, scales, minima } = &**planes;
            numbers::numbers_q4_k(quants, factors, least, scales, minima).reshape([panels, columns, LANES])
        }
        Planes::Q6K { quants, factors, scales } => {
            numbers::numbers_q6_k(quants, factors, scales).reshape([panels, columns, LANES])
        }
        Planes::Single(_) | Planes::Integers(_) => unreachable!("these have products of their own"),
    };
    kernels::product_f32(x, &numbers)
}

/// `x · Wᵀ` with blocks that become numbers in registers.
#[tensor_graph]
fn product_of_blocks(
    matrix: &Matrix,
    x: &Tensor<f32, R, { matrix.columns() }>,
) -> Tensor<f32, R, { matrix.panels() }, { LANES }> {
    match &matrix.planes {
        Planes::Half(numbers) => kernels::product_f16(x, numbers),
        Planes::Q4_0 { quants, scales } => kernels::product_q4_0(x, quants, scales),
        Planes::Q4_1 { quants, scales, minima } => kernels::product_q4_1(x, quants, scales, minima),
        Planes::Q8_0 { quants, scales } => kernels::product_q8_0(x, quants, scales),
        Planes::Q4K(planes) => {
            let Q4K { quants, factors, least, scales, minima } = &**planes;
            kernels::product_q4_k(x, quants, factors, least, scales, minima)
        }
        Planes::Q6K { quants, factors, scales } => kernels::product_q6_k(x, quants, factors, scales),
        Planes::Single(_) | Planes::Integers(_) => unreachable!("these have products of their own"),
    }
}

/// The first columns of products in panels.
#[tensor_kernel]
pub(crate) fn first_columns(panels: &Tensor<f32, R, P, L>, columns: usize) -> Tensor<f32, R, columns> {
    let mut y = Tensor::zeros();
    for r in 0..R {
        for c in 0..columns {
            y[[r, c]] = panels[[r, c / L, c % L]];
        }
    }
    y
}

/// The rows of one tensor, each with those of another one behind it.
#[tensor_kernel]
pub(crate) fn join(a: &Tensor<f32, R, A>, b: &Tensor<f32, R, B>) -> Tensor<f32, R, { A + B }> {
    let mut y = Tensor::zeros();
    for r in 0..R {
        for c in 0..A {
            y[[r, c]] = a[[r, c]];
        }
        for c in 0..B {
            y[[r, A + c]] = b[[r, c]];
        }
    }
    y
}

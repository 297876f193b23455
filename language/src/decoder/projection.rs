//! Several matrices that the same rows are multiplied with.

use tilewright::prelude::*;

use crate::block::{Matrix, Products, first_columns, join, product, product_of_integers};
use crate::error::Error;
use crate::gguf::File;

/// Matrices of equally long rows. Matrices of one block type are stacked to one, which one call multiplies.
pub(super) struct Projection {
    matrices: Vec<Matrix>,
}

impl Projection {
    /// Reads matrices of given numbers of rows.
    pub(super) fn read(
        file: &File,
        names: &[(String, usize)],
        columns: usize,
        products: Products,
    ) -> Result<Self, Error> {
        let mut parts = Vec::new();
        for (name, rows) in names {
            let stored = file.tensor(name)?;
            if stored.shape != [*rows, columns] {
                return Err(Error::tensor(
                    name,
                    format!("has shape {:?}; {rows} × {columns} is expected", stored.shape),
                ));
            }
            parts.push(stored);
        }
        let matrices = match Matrix::stack(&parts, products)? {
            Some(matrix) => vec![matrix],
            None => names
                .iter()
                .zip(&parts)
                .map(|((name, _), stored)| Matrix::pack(name, stored, products))
                .collect::<Result<_, _>>()?,
        };
        Ok(Projection { matrices })
    }

    /// How many rows the matrices have together.
    pub(super) fn width(&self) -> usize {
        self.matrices.iter().map(Matrix::rows).sum()
    }

    /// How many columns each of them has.
    fn columns(&self) -> usize {
        self.matrices[0].columns()
    }

    /// Whether all products are of integers.
    pub(super) fn is_integer(&self) -> bool {
        self.matrices.iter().all(|matrix| matrix.integers().is_some())
    }
}

/// The products of rows with all matrices: for each row, those of the first matrix, those of the second, and so on. For `is_many`, see
/// [`crate::block::products`].
#[tensor_graph]
pub(super) fn multiply(
    projection: &Projection,
    is_many: bool,
    x: &Tensor<f32, R, { projection.columns() }>,
) -> Tensor<f32, R, { projection.width() }> {
    let mut joined = multiply_one(&projection.matrices[0], is_many, x);
    for matrix in &projection.matrices[1..] {
        let next = multiply_one(matrix, is_many, x);
        joined = join(&joined, &next);
    }
    joined
}

/// The products of rows with one matrix, without the zeros that fill up panels.
#[tensor_graph]
fn multiply_one(
    matrix: &Matrix,
    is_many: bool,
    x: &Tensor<f32, R, { matrix.columns() }>,
) -> Tensor<f32, R, { matrix.rows() }> {
    let panels = product(matrix, is_many, x);
    if matrix.width() == matrix.rows() {
        panels.reshape([R, matrix.rows()])
    } else {
        first_columns(&panels, matrix.rows())
    }
}

/// [`multiply`] for quantised rows, where all products are of integers.
#[tensor_graph]
pub(super) fn multiply_integers(
    projection: &Projection,
    is_many: bool,
    x: &Tensor<i8, R, { projection.columns() }>,
    steps: &Tensor<f32, R, B>,
    sums: &Tensor<i32, R, B, 2>,
) -> Tensor<f32, R, { projection.width() }> {
    let mut joined = multiply_one_of_integers(&projection.matrices[0], is_many, x, steps, sums);
    for matrix in &projection.matrices[1..] {
        let next = multiply_one_of_integers(matrix, is_many, x, steps, sums);
        joined = join(&joined, &next);
    }
    joined
}

/// [`multiply_one`] for quantised rows.
#[tensor_graph]
fn multiply_one_of_integers(
    matrix: &Matrix,
    is_many: bool,
    x: &Tensor<i8, R, { matrix.columns() }>,
    steps: &Tensor<f32, R, B>,
    sums: &Tensor<i32, R, B, 2>,
) -> Tensor<f32, R, { matrix.rows() }> {
    let planes = matrix.integers().expect("all products of the projection are of integers");
    let panels = product_of_integers(planes, is_many, x, steps, sums);
    if matrix.width() == matrix.rows() {
        panels.reshape([R, matrix.rows()])
    } else {
        first_columns(&panels, matrix.rows())
    }
}

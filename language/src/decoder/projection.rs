//! Several matrices that the same rows are multiplied with.

use tilewright::Tensor;

use crate::block::{Matrix, Products};
use crate::decoder::rows::Rows;
use crate::error::Error;
use crate::gguf::File;
use crate::tensors;

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

    /// The products with all matrices: for each row, those of the first matrix, those of the second, and so on.
    pub(super) fn multiply(&self, rows: Rows<'_>) -> Result<Tensor<f32, 2>, Error> {
        let count = rows.count();
        let integers: Option<Vec<_>> = self.matrices.iter().map(Matrix::integers).collect();
        let mut products = Vec::with_capacity(self.matrices.len());
        for matrix in &self.matrices {
            products.push(tensors::zeros(matrix.product_shape(count))?);
        }
        if let Some(integers) = integers {
            let rows = rows.quantised()?;
            for (planes, product) in integers.into_iter().zip(&mut products) {
                planes.multiply(&rows, product)?;
            }
        } else {
            let rows = rows.floats()?;
            for (matrix, product) in self.matrices.iter().zip(&mut products) {
                matrix.multiply(&rows, product)?;
            }
        }
        self.join(products)
    }

    /// Products as rows, without the zeros that fill up panels.
    fn join(&self, mut products: Vec<Tensor<f32, 3>>) -> Result<Tensor<f32, 2>, Error> {
        let count = products.first().map_or(0, |product| product.dim(0));
        let width = self.width();
        if let ([matrix], 1) = (&self.matrices[..], products.len())
            && matrix.width() == width
        {
            return tensors::reshape(products.swap_remove(0), [count, width]);
        }
        let mut joined = tensors::zeros([count, width])?;
        for (row, target) in joined.as_mut_slice().chunks_exact_mut(width).enumerate() {
            let mut start = 0;
            for (matrix, product) in self.matrices.iter().zip(&products) {
                let own = &product.as_slice()[row * matrix.width()..][..matrix.rows()];
                target[start..start + own.len()].copy_from_slice(own);
                start += own.len();
            }
        }
        Ok(joined)
    }
}

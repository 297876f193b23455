//! Several matrices that the same rows are multiplied with.

use tilewright::Tensor;

use crate::block::{Matrix, Products};
use crate::decoder::tensors;
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

    /// The products with all matrices: for each row of `x`, those of the first matrix, those of the second, and so on.
    pub(super) fn multiply(&self, x: &Tensor<f32, 2>) -> Result<Tensor<f32, 2>, Error> {
        let rows = x.dim(0);
        let product = |matrix: &Matrix| {
            let mut y = tensors::zeros(matrix.product_shape(rows))?;
            matrix.multiply(x, &mut y)?;
            tensors::reshape(y, [rows, matrix.width()])
        };
        if let [matrix] = &self.matrices[..]
            && matrix.width() == matrix.rows()
        {
            return product(matrix);
        }
        let products: Vec<_> = self.matrices.iter().map(product).collect::<Result<_, _>>()?;
        let width = self.matrices.iter().map(Matrix::rows).sum();
        let mut joined = tensors::zeros([rows, width])?;
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

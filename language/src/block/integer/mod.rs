//! Matrices of quantised blocks for products of integers: rows are quantised to 8 bits, by blocks of 32, before they are multiplied.

pub(super) mod kernels;
mod many;
mod pack;

use half::f16;
use tilewright::{Tensor, TensorView};

use crate::block::matrix::MANY_ROWS;
use crate::error::Error;
use crate::tensors;

/// The fields of blocks; see `kernels`.
pub(crate) enum Planes {
    Q4_0 { quants: Tensor<u8, 5>, scales: Tensor<f16, 3> },
    Q4_1 { quants: Tensor<u8, 5>, scales: Tensor<f16, 3>, minima: Tensor<f16, 3> },
    Q8_0 { quants: Tensor<u8, 5>, scales: Tensor<f16, 3> },
    Q4K(Box<Q4K>),
    Q6K { quants: Tensor<u8, 6>, factors: Tensor<i8, 4>, scales: Tensor<f16, 3> },
}

pub(crate) struct Q4K {
    quants: Tensor<u8, 6>,
    factors: Tensor<u8, 4>,
    least: Tensor<u8, 4>,
    scales: Tensor<f16, 3>,
    minima: Tensor<f16, 3>,
}

/// Rows that are quantised by blocks; see [`kernels::quantise_rows`].
pub(crate) struct QuantisedRows {
    pub(crate) integers: Tensor<i8, 2>,
    pub(crate) steps: Tensor<f32, 2>,
    pub(crate) sums: Tensor<i32, 3>,
}

/// The numbers by which the sums of integers of many rows are scaled.
type Scales = (Tensor<f32, 3>, Tensor<f32, 3>);

impl Planes {
    /// Computes `x · Wᵀ` into a tensor of the shape [`Matrix::product_shape`](crate::block::Matrix::product_shape).
    pub(crate) fn multiply(&self, rows: &QuantisedRows, y: &mut Tensor<f32, 3>) -> Result<(), Error> {
        let is_many = rows.integers.dim(0) >= MANY_ROWS;
        if is_many { self.multiply_many(rows, y) } else { self.multiply_few(rows, y) }
    }

    fn multiply_few(&self, rows: &QuantisedRows, y: &mut Tensor<f32, 3>) -> Result<(), Error> {
        let QuantisedRows { integers: x, steps, sums } = rows;
        match self {
            Planes::Q4_0 { quants, scales } => {
                kernels::product_q4_0::call_into(x, steps, sums, quants, scales, y)?;
            }
            Planes::Q4_1 { quants, scales, minima } => {
                kernels::product_q4_1::call_into(x, steps, sums, quants, scales, minima, y)?;
            }
            Planes::Q8_0 { quants, scales } => {
                kernels::product_q8_0::call_into(x, steps, sums, quants, scales, y)?;
            }
            Planes::Q4K(planes) => {
                let Q4K { quants, factors, least, scales, minima } = &**planes;
                kernels::product_q4_k::call_into(x, steps, sums, quants, factors, least, scales, minima, y)?;
            }
            Planes::Q6K { quants, factors, scales } => {
                kernels::product_q6_k::call_into(x, steps, sums, quants, factors, scales, y)?;
            }
        }
        Ok(())
    }

    fn multiply_many(&self, rows: &QuantisedRows, y: &mut Tensor<f32, 3>) -> Result<(), Error> {
        match self {
            Planes::Q4_0 { quants, scales } => rows.multiply(
                (&bytes_of(many::halves(quants)?)?).into(),
                &many::offset_scales(scales, 8.0)?,
                y,
            ),
            Planes::Q4_1 { quants, scales, minima } => rows.multiply(
                (&bytes_of(many::halves(quants)?)?).into(),
                &many::plain_scales(scales, minima)?,
                y,
            ),
            Planes::Q8_0 { quants, scales } => {
                rows.multiply(quants.into(), &many::offset_scales(scales, 128.0)?, y)
            }
            Planes::Q4K(planes) => {
                let Q4K { quants, factors, least, scales, minima } = &**planes;
                let [panels, blocks, parts, groups, lanes, group] = quants.shape();
                let quants = tensors::view(quants, [panels, blocks * parts, groups, lanes, group])?;
                let (own, lowest) = many::part_scales(factors, least, scales, minima)?;
                let shape = [panels, blocks * parts, lanes];
                let scales = (tensors::reshape(own, shape)?, tensors::reshape(lowest, shape)?);
                rows.multiply((&bytes_of(many::halves(quants)?)?).into(), &scales, y)
            }
            Planes::Q6K { quants, factors, scales } => {
                let [panels, blocks, parts, groups, lanes, group] = quants.shape();
                let bytes = tensors::view(quants, [panels, blocks * parts / 2, 2, groups, lanes, group])?;
                let (own, lowest) = many::offset_part_scales(factors, scales, 32.0)?;
                let shape = [panels, blocks * parts / 2, 2, lanes];
                let (own, lowest) = (tensors::reshape(own, shape)?, tensors::reshape(lowest, shape)?);
                let QuantisedRows { integers: x, steps, sums } = rows;
                Ok(many::product_half_blocks::call_into(x, steps, sums, bytes, &own, &lowest, y)?)
            }
        }
    }
}

impl QuantisedRows {
    pub(crate) fn of(x: &Tensor<f32, 2>) -> Result<Self, Error> {
        let [count, columns] = x.shape();
        let (integers, steps, sums) = kernels::quantise_rows(tensors::view(x, [count, columns / 32, 32])?)?;
        Ok(QuantisedRows { integers: tensors::reshape(integers, [count, columns])?, steps, sums })
    }

    fn multiply(
        &self,
        bytes: TensorView<'_, u8, 5>,
        (scales, minima): &Scales,
        y: &mut Tensor<f32, 3>,
    ) -> Result<(), Error> {
        let QuantisedRows { integers: x, steps, sums } = self;
        Ok(many::product_bytes::call_into(x, steps, sums, bytes, scales, minima, y)?)
    }
}

/// The halves of bytes as the bytes of whole blocks.
fn bytes_of(halves: Tensor<u8, 6>) -> Result<Tensor<u8, 5>, Error> {
    let [panels, blocks, both, groups, lanes, group] = halves.shape();
    tensors::reshape(halves, [panels, blocks, both * groups, lanes, group])
}

/// The program that a product with blocks of 4 bits runs.
#[cfg(test)]
pub(super) fn explained_q4_1(dims: &[(&str, i64)]) -> String {
    tilewright::explain(kernels::product_q4_1::kernel(), dims).unwrap().flat.to_string()
}

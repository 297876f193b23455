//! A matrix of quantised blocks, ready to be multiplied with.

use half::f16;
use tilewright::Tensor;

use crate::block::pack::{Blocks, LANES};
use crate::block::products::product;
use crate::block::{BlockType, integer};
use crate::error::Error;
use crate::gguf::StoredTensor;

/// A matrix `W` of `rows × columns` in blocks, for products `x · Wᵀ`.
pub struct Matrix {
    pub(super) planes: Planes,
    rows: usize,
    columns: usize,
}

/// From this many rows on, a product first turns the whole matrix into numbers.
const MANY_ROWS: usize = 4;

/// How products with matrices of quantised blocks are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Products {
    /// With rows as they are: a product differs from the exact one only by the rounding of floats.
    #[default]
    Floats,
    /// With rows that are quantised to 8 bits first, in blocks of 32 with a step each, and integer sums of each block. An element of a row
    /// changes by up to half a step, which is a 254th of the largest one of its block.
    Integers,
}

/// The fields of blocks; see [`crate::block::kernels`].
pub(super) enum Planes {
    Integers(integer::Planes),
    Single(Tensor<f32, 3>),
    Half(Tensor<f16, 3>),
    Q4_0 { quants: Tensor<u8, 4>, scales: Tensor<f16, 3> },
    Q4_1 { quants: Tensor<u8, 4>, scales: Tensor<f16, 3>, minima: Tensor<f16, 3> },
    Q8_0 { quants: Tensor<i8, 4>, scales: Tensor<f16, 3> },
    Q4K(Box<Q4K>),
    Q6K { quants: Tensor<i8, 4>, factors: Tensor<i8, 4>, scales: Tensor<f16, 3> },
}

pub(super) struct Q4K {
    pub(super) quants: Tensor<u8, 4>,
    pub(super) factors: Tensor<u8, 4>,
    pub(super) least: Tensor<u8, 4>,
    pub(super) scales: Tensor<f16, 3>,
    pub(super) minima: Tensor<f16, 3>,
}

impl Matrix {
    /// Packs a stored matrix for products of a kind; matrices of floats have products of floats alone. `name` is for messages.
    ///
    /// # Errors
    /// When the tensor is no matrix.
    pub fn pack(name: &str, stored: &StoredTensor<'_>, products: Products) -> Result<Self, Error> {
        let &[rows, columns] = stored.shape else {
            return Err(Error::tensor(
                name,
                format!("has shape {:?}, and a matrix is expected", stored.shape),
            ));
        };
        Self::from_blocks((stored.kind, stored.bytes), [rows, columns], products)
    }

    /// Packs rows of blocks.
    fn from_blocks(
        (kind, bytes): (BlockType, &[u8]),
        [rows, columns]: [usize; 2],
        products: Products,
    ) -> Result<Self, Error> {
        let blocks = Blocks::new(bytes, kind, rows, columns);
        if products == Products::Integers
            && let Some(planes) = integer::Planes::pack(kind, &blocks)?
        {
            return Ok(Matrix { planes: Planes::Integers(planes), rows, columns });
        }
        let planes = match kind {
            BlockType::F32 => Planes::Single(blocks.floats()?),
            BlockType::F16 => Planes::Half(blocks.halves(0)?),
            BlockType::Q4_0 => Planes::Q4_0 { quants: blocks.bytes(2, 16)?, scales: blocks.halves(0)? },
            BlockType::Q4_1 => Planes::Q4_1 {
                quants: blocks.bytes(4, 16)?,
                scales: blocks.halves(0)?,
                minima: blocks.halves(2)?,
            },
            BlockType::Q8_0 => Planes::Q8_0 { quants: blocks.signed(2, 32)?, scales: blocks.halves(0)? },
            BlockType::Q4K => Planes::Q4K(Box::new(Q4K {
                quants: blocks.bytes(16, 128)?,
                factors: blocks.factors(0)?,
                least: blocks.factors(1)?,
                scales: blocks.halves(0)?,
                minima: blocks.halves(2)?,
            })),
            BlockType::Q6K => Planes::Q6K {
                quants: blocks.six_bits()?,
                factors: blocks.signed(192, 16)?,
                scales: blocks.halves(208)?,
            },
        };
        Ok(Matrix { planes, rows, columns })
    }

    /// Packs matrices of equally long rows one below the other; `None` when their blocks have different types.
    pub(crate) fn stack(parts: &[StoredTensor<'_>], products: Products) -> Result<Option<Self>, Error> {
        let Some(first) = parts.first() else { return Ok(None) };
        let columns = first.shape.last().copied().unwrap_or_default();
        if parts.iter().any(|part| part.kind != first.kind || part.shape.last() != Some(&columns)) {
            return Ok(None);
        }
        let bytes: Vec<u8> = parts.iter().flat_map(|part| part.bytes.iter().copied()).collect();
        let rows = parts.iter().map(|part| part.shape[0]).sum();
        Self::from_blocks((first.kind, &bytes), [rows, columns], products).map(Some)
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many columns it has: the length of the rows that it is multiplied with.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// How many numbers a row of a product has: the rows of the matrix, and zeros up to whole panels.
    pub fn width(&self) -> usize {
        self.rows.next_multiple_of(LANES)
    }

    /// How many panels of [`LANES`] rows it has.
    pub(crate) fn panels(&self) -> usize {
        self.width() / LANES
    }

    /// Computes `x · Wᵀ` for rows `x` of as many numbers as the matrix has columns: panels of the products of each row, and zeros up to
    /// [`Matrix::width`].
    ///
    /// # Errors
    /// When the shapes do not fit.
    pub fn multiply(&self, x: &Tensor<f32, 2>) -> Result<Tensor<f32, 3>, Error> {
        Ok(product(self, is_many(x.dim(0)), x)?)
    }

    /// The fields of its blocks, if products with it are of integers.
    pub(crate) fn integers(&self) -> Option<&integer::Planes> {
        match &self.planes {
            Planes::Integers(planes) => Some(planes),
            _ => None,
        }
    }
}

/// Whether a product with this many rows first turns the whole matrix into numbers or bytes.
pub(crate) fn is_many(rows: usize) -> bool {
    rows >= MANY_ROWS
}

//! A matrix of quantised blocks, ready to be multiplied with.

use half::f16;
use tilewright::Tensor;

use crate::block::pack::{Blocks, LANES};
use crate::block::{BlockType, QuantisedRows, integer, kernels, numbers};
use crate::error::Error;
use crate::gguf::StoredTensor;

/// A matrix `W` of `rows × columns` in blocks, for products `x · Wᵀ`.
pub struct Matrix {
    planes: Planes,
    rows: usize,
    columns: usize,
}

/// From this many rows on, a product first turns the whole matrix into numbers.
pub(super) const MANY_ROWS: usize = 4;

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
enum Planes {
    Integers(integer::Planes),
    Single(Tensor<f32, 3>),
    Half(Tensor<f16, 3>),
    Q4_0 { quants: Tensor<u8, 4>, scales: Tensor<f16, 3> },
    Q4_1 { quants: Tensor<u8, 4>, scales: Tensor<f16, 3>, minima: Tensor<f16, 3> },
    Q8_0 { quants: Tensor<i8, 4>, scales: Tensor<f16, 3> },
    Q4K(Box<Q4K>),
    Q6K { quants: Tensor<i8, 4>, factors: Tensor<i8, 4>, scales: Tensor<f16, 3> },
}

struct Q4K {
    quants: Tensor<u8, 4>,
    factors: Tensor<u8, 4>,
    least: Tensor<u8, 4>,
    scales: Tensor<f16, 3>,
    minima: Tensor<f16, 3>,
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

    /// The shape of the product with `rows` rows.
    pub fn product_shape(&self, rows: usize) -> [usize; 3] {
        [rows, self.width() / LANES, LANES]
    }

    /// Computes `x · Wᵀ` for rows `x` of as many numbers as the matrix has columns, into a tensor of the shape [`Matrix::product_shape`].
    ///
    /// # Errors
    /// When the shapes do not fit.
    pub fn multiply(&self, x: &Tensor<f32, 2>, y: &mut Tensor<f32, 3>) -> Result<(), Error> {
        if x.dim(0) >= MANY_ROWS
            && let Some(numbers) = self.numbers()?
        {
            kernels::product_f32::call_into(x, &numbers, y)?;
            return Ok(());
        }
        match &self.planes {
            Planes::Integers(planes) => planes.multiply(&QuantisedRows::of(x)?, y)?,
            Planes::Single(numbers) => kernels::product_f32::call_into(x, numbers, y)?,
            Planes::Half(numbers) => kernels::product_f16::call_into(x, numbers, y)?,
            Planes::Q4_0 { quants, scales } => kernels::product_q4_0::call_into(x, quants, scales, y)?,
            Planes::Q4_1 { quants, scales, minima } => {
                kernels::product_q4_1::call_into(x, quants, scales, minima, y)?;
            }
            Planes::Q8_0 { quants, scales } => kernels::product_q8_0::call_into(x, quants, scales, y)?,
            Planes::Q4K(planes) => {
                let Q4K { quants, factors, least, scales, minima } = &**planes;
                kernels::product_q4_k::call_into(x, quants, factors, least, scales, minima, y)?;
            }
            Planes::Q6K { quants, factors, scales } => {
                kernels::product_q6_k::call_into(x, quants, factors, scales, y)?;
            }
        }
        Ok(())
    }

    /// The fields of its blocks, if products with it are of integers.
    pub(crate) fn integers(&self) -> Option<&integer::Planes> {
        match &self.planes {
            Planes::Integers(planes) => Some(planes),
            _ => None,
        }
    }

    /// The panels as numbers, which memory holds for as long as one product takes. `None` for a matrix that is stored so, and for one whose
    /// products are of integers.
    fn numbers(&self) -> Result<Option<Tensor<f32, 3>>, Error> {
        let shape = [self.width() / LANES, self.columns, LANES];
        let numbers = match &self.planes {
            Planes::Single(_) | Planes::Integers(_) => return Ok(None),
            Planes::Half(halves) => numbers::numbers_f16(halves)?.reshape(shape),
            Planes::Q4_0 { quants, scales } => numbers::numbers_q4_0(quants, scales)?.reshape(shape),
            Planes::Q4_1 { quants, scales, minima } => {
                numbers::numbers_q4_1(quants, scales, minima)?.reshape(shape)
            }
            Planes::Q8_0 { quants, scales } => numbers::numbers_q8_0(quants, scales)?.reshape(shape),
            Planes::Q4K(planes) => {
                let Q4K { quants, factors, least, scales, minima } = &**planes;
                numbers::numbers_q4_k(quants, factors, least, scales, minima)?.reshape(shape)
            }
            Planes::Q6K { quants, factors, scales } => {
                numbers::numbers_q6_k(quants, factors, scales)?.reshape(shape)
            }
        };
        numbers.map(Some).map_err(|error| Error::Memory(error.to_string()))
    }
}

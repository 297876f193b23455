//! The rows that matrices of a layer are multiplied with, each computed in the form that the matrix reads.

use tilewright::Tensor;

use crate::block::QuantisedRows;
use crate::decoder::{kernels, quantised};
use crate::error::Error;
use crate::tensors;

/// The numbers of each token between the parts of layers.
pub(super) struct Stream {
    /// All that has been found for each token.
    pub(super) sum: Tensor<f32, 2>,
    /// The part that was found last, which is added when the next part reads the sum.
    pub(super) found: Tensor<f32, 2>,
}

impl Stream {
    /// The embeddings of tokens, a row each.
    pub(super) fn new(embeddings: Tensor<f32, 2>) -> Result<Self, Error> {
        let found = tensors::zeros(embeddings.shape())?;
        Ok(Stream { sum: embeddings, found })
    }

    /// How many rows there are.
    pub(super) fn rows(&self) -> usize {
        self.sum.dim(0)
    }

    /// One row alone.
    pub(super) fn row(&self, row: usize) -> Result<Stream, Error> {
        let width = self.sum.dim(1);
        let of = |rows: &Tensor<f32, 2>| {
            tensors::from_vec(rows.as_slice()[row * width..][..width].to_vec(), [1, width])
        };
        Ok(Stream { sum: of(&self.sum)?, found: of(&self.found)? })
    }
}

/// The rows of a product.
pub(super) enum Rows<'a> {
    /// Numbers as they are.
    Plain(Tensor<f32, 2>),
    /// The sums of a stream, divided by the root of their mean square, times weights.
    Normal { stream: &'a mut Stream, weights: &'a Tensor<f32, 1>, epsilon: f32 },
    /// The numbers that pass a gate, which stands before them in each row.
    Gated(Tensor<f32, 2>),
}

impl Rows<'_> {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        match self {
            Rows::Plain(x) | Rows::Gated(x) => x.dim(0),
            Rows::Normal { stream, .. } => stream.rows(),
        }
    }

    /// As floats.
    pub(super) fn floats(self) -> Result<Tensor<f32, 2>, Error> {
        Ok(match self {
            Rows::Plain(x) => x,
            Rows::Normal { stream: Stream { sum, found }, weights, epsilon } => {
                kernels::normalise(sum, &*found, weights, epsilon)?
            }
            Rows::Gated(both) => {
                let [rows, width] = both.shape();
                kernels::gate(&tensors::reshape(both, [rows, 2, width / 2])?)?
            }
        })
    }

    /// As integers, in blocks of 32.
    pub(super) fn quantised(self) -> Result<QuantisedRows, Error> {
        let (integers, steps, sums) = match self {
            Rows::Plain(x) => return QuantisedRows::of(&x),
            Rows::Normal { stream: Stream { sum, found }, weights, epsilon } => {
                let weights = tensors::view(weights, [weights.dim(0) / 32, 32])?;
                quantised::normalise(sum, &*found, weights, epsilon)?
            }
            Rows::Gated(both) => {
                let [rows, width] = both.shape();
                quantised::gate(&tensors::reshape(both, [rows, 2, width / 64, 32])?)?
            }
        };
        Ok(QuantisedRows { integers, steps, sums })
    }
}

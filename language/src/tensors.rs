//! Tensors of our own, whose shapes only a lack of memory makes fail.

use tilewright::{Element, Tensor};

use crate::error::Error;

pub(crate) fn zeros<T: Element, const RANK: usize>(shape: [usize; RANK]) -> Result<Tensor<T, RANK>, Error> {
    Tensor::zeros(shape).map_err(|error| Error::Memory(error.to_string()))
}

pub(crate) fn from_vec<T: Element, const RANK: usize>(
    elements: Vec<T>,
    shape: [usize; RANK],
) -> Result<Tensor<T, RANK>, Error> {
    Tensor::from_vec(elements, shape).map_err(|error| Error::Memory(error.to_string()))
}

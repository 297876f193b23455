//! Tensors of our own, whose shapes only a lack of memory makes fail.

use tilewright::{Element, Tensor, TensorView};

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

pub(crate) fn reshape<T: Element, const FROM: usize, const TO: usize>(
    tensor: Tensor<T, FROM>,
    shape: [usize; TO],
) -> Result<Tensor<T, TO>, Error> {
    tensor.reshape(shape).map_err(|error| Error::Memory(error.to_string()))
}

pub(crate) fn view<T: Element, const FROM: usize, const TO: usize>(
    tensor: &Tensor<T, FROM>,
    shape: [usize; TO],
) -> Result<TensorView<'_, T, TO>, Error> {
    TensorView::from(tensor).reshape(shape).map_err(|error| Error::Memory(error.to_string()))
}

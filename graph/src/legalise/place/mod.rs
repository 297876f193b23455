//! Elements at places that other tensors name, and elements that their places decide.

mod gather;
mod generate;
mod scatter;

use tilewright_core::build::Value;
use tilewright_core::dtype::DType;

use crate::legalise::emitter::Tensor;
use crate::legalise::scalar::{add, less};
use crate::legalise::{Unsupported, unsupported};

pub(crate) use gather::{gather_elements, gather_nd, reverse_sequence};
pub(crate) use generate::{one_hot, triangle};
pub(crate) use scatter::{scatter_elements, scatter_nd};

/// A place in a dimension of extent `end`, from a number that counts from the end when it is negative. Places outside are an error
/// when the program runs.
pub(super) fn place(number: &Value, end: &Value) -> Value {
    let number = number.cast(DType::I64);
    less(&number, &Value::typed_int(DType::I64, 0)).select(add(&number, end), number)
}

/// Refuses indices of types that are no indices.
pub(super) fn require_indices(indices: &Tensor) -> Result<(), Unsupported> {
    if !matches!(indices.dtype, DType::I32 | DType::I64) {
        unsupported!("indices of type {} have no kernel form", indices.element);
    }
    Ok(())
}

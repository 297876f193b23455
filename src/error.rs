//! What a call can answer instead of a result.

use tilewright_core::build::DefinitionErrors;
use tilewright_core::target::{BackendError, CallError};
use tilewright_core::tensor::{NotContiguous, ShapeError};

use crate::definition::ArgumentError;

/// Why a kernel could not be called.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The arguments do not fit the kernel's signature.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// A tensor's shape is impossible.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// A tensor's elements do not lie next to each other.
    #[error("argument `{argument}`: {problem}")]
    NotContiguous {
        /// The argument.
        argument: String,
        /// What its layout is, and what to do.
        problem: NotContiguous,
    },
    /// A reference used an index outside a tensor.
    #[error("index {index:?} is outside the tensor `{tensor}` of shape {shape:?}")]
    Subscript {
        /// The tensor, as the definition names it.
        tensor: String,
        /// The index.
        index: Vec<usize>,
        /// The tensor's shape.
        shape: Vec<usize>,
    },
    /// A reference computed a `usize` that would be negative.
    #[error("{0}; test the order first, as in `if i >= k {{ … i - k … }}`")]
    NegativeIndex(String),
    /// The call failed while it ran, or was refused by the compiled code.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The definition cannot be made into a program.
    #[error(transparent)]
    Definition(#[from] DefinitionErrors),
    /// The program cannot be compiled for this machine.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

//! Errors of calls.

use std::fmt;
use std::sync::Arc;

use tilewright_core::build::DefinitionErrors;
use tilewright_core::build::bounds::OutOfBoundsErrors;
use tilewright_core::device::{CallError, CompileError, DeviceError};
use tilewright_core::interp::InterpError;
use tilewright_core::lower::LowerError;
use tilewright_core::tensor::{NotContiguous, ShapeError};
use tilewright_search::records::DatabaseError;

use crate::definition::ArgumentError;
use crate::graph::GraphError;

/// Why a kernel could not be called, explained or tuned.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The arguments do not fit the kernel's signature.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// A dimension has the name of a constant in scope, and another size.
    #[error(
        "the dimension `{dimension}` is {found}, and the constant `{dimension}` where the kernel is defined has another \
         value: pass tensors of the constant's size, or rename the dimension"
    )]
    ConstantDimension {
        /// The name.
        dimension: &'static str,
        /// The size of the tensors.
        found: i64,
    },
    /// A tensor's shape is impossible.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// A tensor's elements do not lie next to each other.
    #[error("argument `{argument}`: {problem}")]
    NotContiguous {
        /// The argument.
        argument: String,
        /// The layout, and the remedy.
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
    /// A function of tensors cannot be recorded as a graph, or its shapes do not fit.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The call failed while it ran, or was refused by the compiled code.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The definition has no schedulable form.
    #[error(transparent)]
    Definition(#[from] DefinitionErrors),
    /// Definitions cannot be made into programs.
    #[error("{0}")]
    Definitions(AllDefinitionErrors),
    /// A program from which a kernel was to be made is none that can be scheduled.
    #[error("no kernel can be made of the program `{kernel}`: {problem}")]
    Malformed {
        /// The program's name.
        kernel: String,
        /// Every invariant that it breaks.
        problem: String,
    },
    /// A program cannot be interpreted for these arguments.
    #[error(transparent)]
    Interpreter(#[from] InterpError),
    /// For these dimensions the definition accesses elements outside of a tensor.
    #[error("with {dims}: {errors}")]
    OutOfBounds {
        /// The dimensions: `M = 4, N = 8`.
        dims: String,
        /// Every access outside of a tensor.
        errors: OutOfBoundsErrors,
    },
    /// The program cannot be lowered for these dimensions.
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// The program cannot be compiled for this machine.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// A setting of the environment is invalid.
    #[error("the environment variable {variable} is `{value}`: {problem}")]
    Environment {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// The problem.
        problem: String,
    },
    /// A device could not be opened or used.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// No device of this name was added.
    #[error("no device is named `{name}`; there are: {known}")]
    UnknownDevice {
        /// The name that was asked for.
        name: String,
        /// The names of all devices.
        known: String,
    },
    /// Nothing registered a device for calls that name none.
    #[error(
        "the program has no default device: build `tilewright` with its feature `jit`, or run the kernel on a device that was added"
    )]
    NoDefaultDevice,
    /// Records could not be read or written.
    #[error(transparent)]
    Records(#[from] Arc<DatabaseError>),
    /// No kernel of this name is linked into the program.
    #[error("no kernel is named `{name}`; there are: {known}")]
    UnknownKernel {
        /// The name that was asked for.
        name: String,
        /// The names of all kernels.
        known: String,
    },
    /// Dimensions were given by names that the kernel does not have.
    #[error("kernel `{kernel}` needs a value for each of {expected}; {problem}")]
    DimensionNames {
        /// The kernel.
        kernel: String,
        /// The names of its dimensions and `usize` arguments.
        expected: String,
        /// The name that is missing, unknown or given twice.
        problem: String,
    },
}

/// Everything that is wrong with the definitions of several kernels.
#[derive(Clone, Debug)]
pub struct AllDefinitionErrors(pub Vec<DefinitionErrors>);

impl fmt::Display for AllDefinitionErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&all.join("\n\n"))
    }
}

impl From<DatabaseError> for Error {
    fn from(error: DatabaseError) -> Self {
        Error::Records(Arc::new(error))
    }
}

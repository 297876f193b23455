//! Graphs of kernels: functions with `#[tensor_graph]`, executed once with extents that are names.
//!
//! A [`KernelGraph`] is what such a function does to tensors, as data: which kernels it calls, on what, with which numbers. Loops and
//! conditions of the function have been followed, and tensors that the function reads from elsewhere, such as weights, have become
//! constants.
//!
//! | module | holds |
//! |---|---|
//! | `extent` | extents: numbers, names of dimensions, and arithmetic on them |
//! | `recorder` | the graph under construction, of which there is one at a time in a thread |
//! | `traced` | the stand-ins for tensors in a function that is recorded |
//! | `signature` | comparing fixed extents when a program is compiled |
//! | `call` | calls of kernels, with the shapes of their results |

mod call;
mod extent;
mod recorder;
mod signature;
mod traced;

use tilewright_core::dtype::DType;
use tilewright_core::expr::Constant;
use tilewright_core::tensor::AnyTensor;

pub use call::{CallRecorder, CallResults};
pub use extent::{Dim, Extent, ExtentOp, GraphDim};
pub use recorder::{check_extent, input, record};
pub use signature::check_call;
pub use traced::{Operand, Traced};

use crate::kernel::Kernel;

/// A function of tensors that calls kernels, as data.
#[derive(Clone, Debug)]
pub struct KernelGraph {
    /// The name of the function.
    pub name: String,
    /// Every tensor, by its position.
    pub values: Vec<GraphValue>,
    /// The tensors that a run is given, in order.
    pub inputs: Vec<GraphInput>,
    /// How the other tensors come about, in order.
    pub steps: Vec<GraphStep>,
    /// The positions of the results.
    pub outputs: Vec<usize>,
    /// Extents that have to be equal, and are not the same expression.
    pub checks: Vec<EqualExtents>,
}

/// A tensor of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphValue {
    /// The type of an element.
    pub dtype: DType,
    /// The extents, outermost first.
    pub shape: Vec<Extent>,
}

/// A tensor that a run is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphInput {
    /// The name of the argument.
    pub name: String,
    /// The position of the tensor.
    pub value: usize,
}

/// A step of a graph.
#[derive(Clone, Debug)]
pub enum GraphStep {
    /// A tensor that is the same in every run.
    Constant {
        /// The elements.
        tensor: AnyTensor,
        /// The position of the tensor.
        value: usize,
    },
    /// A call of a kernel.
    Call(KernelCall),
    /// The same elements under another shape.
    Reshape {
        /// The position of the tensor.
        input: usize,
        /// The position of the result.
        output: usize,
    },
}

/// A call of a kernel.
#[derive(Clone, Debug)]
pub struct KernelCall {
    /// The kernel.
    pub kernel: &'static Kernel,
    /// The values of its `usize` arguments.
    pub sizes: Vec<Extent>,
    /// The values of its run-time scalars.
    pub scalars: Vec<Constant>,
    /// The positions of the tensors that it reads.
    pub inputs: Vec<usize>,
    /// The positions of its results.
    pub outputs: Vec<usize>,
}

/// Two extents that have to be equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EqualExtents {
    /// The extent of a tensor.
    pub found: Extent,
    /// The extent that it has to have.
    pub expected: Extent,
    /// Which extent it is: ``kernel `linear`, argument `weight`: dimension 0 (`K`)``.
    pub place: String,
}

/// Why a function cannot be recorded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// A stand-in is used outside of the recording that made it.
    #[error("a tensor of a graph is used where no graph is recorded")]
    NotRecording,
    /// A graph is recorded while another one is in the same thread.
    #[error("the graph `{inner}` is recorded inside of `{outer}`; call it as a function instead")]
    Nested {
        /// The graph that is being recorded.
        outer: String,
        /// The graph that was to be recorded.
        inner: String,
    },
    /// An extent is not what it has to be.
    #[error("{place} is {found}, expected {expected}")]
    Extent {
        /// Which extent.
        place: String,
        /// The extent.
        found: String,
        /// The extent that it has to have.
        expected: String,
    },
    /// A tensor updated in place.
    #[error(
        "kernel `{kernel}` updates `{argument}` in place, which a graph cannot: return the result instead"
    )]
    InPlace {
        /// The kernel.
        kernel: String,
        /// The argument.
        argument: String,
    },
    /// The shape of a result is computed in a way that a graph cannot follow.
    #[error("the extent of dimension {axis} of `{result}` of kernel `{kernel}` cannot be followed: {reason}")]
    Computed {
        /// The kernel.
        kernel: String,
        /// The result.
        result: String,
        /// The dimension, from 0.
        axis: usize,
        /// The obstacle.
        reason: String,
    },
}

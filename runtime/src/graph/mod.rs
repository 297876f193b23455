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
//! | `uses` | the kernels that a graph calls at given sizes |

mod call;
mod extent;
mod recorder;
mod signature;
mod traced;
mod uses;

use tilewright_core::dtype::DType;
use tilewright_core::expr::Constant;
use tilewright_core::tensor::{AnyTensor, Element};

pub use call::{CallRecorder, CallResults};
pub use extent::{Dim, Extent, ExtentOp, GraphDim};
pub use recorder::{check_extent, first, input, inputs, record};
pub use signature::check_call;
pub use traced::{Operand, Reshape, Traced};
pub use uses::GraphKernel;

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
    /// The results, and behind them the tensors that the function updates, as they are at its end.
    pub outputs: Vec<GraphOutput>,
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

/// A tensor that a run gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphOutput {
    /// `output_0` and so on for results, `NAME_out` for an argument that is updated.
    pub name: String,
    /// The position of the tensor.
    pub value: usize,
}

impl GraphOutput {
    /// A result of the function.
    pub fn result<T: Element, const RANK: usize>(position: usize, tensor: Traced<T, RANK>) -> Self {
        GraphOutput { name: format!("output_{position}"), value: tensor.value() }
    }

    /// An argument that the function updates, as it is at its end.
    pub fn updated<T: Element, const RANK: usize>(name: &str, tensor: Traced<T, RANK>) -> Self {
        GraphOutput { name: format!("{name}_out"), value: tensor.value() }
    }

    /// A list of tensors that the function updates.
    pub fn updated_list<T: Element, const RANK: usize>(name: &str, list: &[Traced<T, RANK>]) -> Vec<Self> {
        let named =
            |(place, tensor): (usize, &Traced<T, RANK>)| Self::updated(&element(name, place), *tensor);
        list.iter().enumerate().map(named).collect()
    }
}

/// The name of an element of a list of tensors.
fn element(list: &str, place: usize) -> String {
    format!("{list}_{place}")
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
    /// The positions of the tensors that it reads, also of those that it updates.
    pub inputs: Vec<usize>,
    /// The positions of its results, and behind them those of the tensors that it updates, as they are afterwards.
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
    /// An extent has no size.
    #[error(
        "graph `{graph}`: {extent} has no size where {given}; name a size for each of the graph's dimensions"
    )]
    Size {
        /// The graph.
        graph: String,
        /// The extent.
        extent: String,
        /// The sizes of dimensions.
        given: String,
    },
    /// A list of tensors that nothing gives a shape.
    #[error(
        "graph `{graph}`, argument `{argument}`: an empty list gives the dimension `{dimension}` no size"
    )]
    EmptyList {
        /// The graph.
        graph: String,
        /// The argument.
        argument: String,
        /// The dimension.
        dimension: String,
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

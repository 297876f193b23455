//! Why a model cannot be loaded or run.

use tilewright_core::device::DeviceError;
use tilewright_graph::build::BuildError;
use tilewright_graph::interpret::RunError;
use tilewright_graph::onnx::OnnxError;
use tilewright_graph::tensor::{ElementType, TensorError};

/// Why a model cannot be loaded or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file is no model that can be imported.
    #[error(transparent)]
    Import(#[from] OnnxError),
    /// A folder is no packed model, or cannot become one.
    #[error("folder `{}`: {reason}", path.display())]
    Folder {
        /// The folder, or the file in it.
        path: std::path::PathBuf,
        /// Why.
        reason: String,
    },
    /// A bucket is none of the model.
    #[error("bucket `{name}`: {reason}")]
    Bucket {
        /// The name of the extent.
        name: String,
        /// Why.
        reason: String,
    },
    /// The accuracy of products cannot be set.
    #[error("accuracy {relative}: {reason}")]
    Accuracy {
        /// The accuracy that was asked for.
        relative: f64,
        /// Why.
        reason: &'static str,
    },
    /// No elements can be made up for an input.
    #[error("no elements can be made up for input `{name}`: {reason}")]
    StandIn {
        /// The input.
        name: String,
        /// Why.
        reason: String,
    },
    /// An environment variable has a value without a meaning.
    #[error(transparent)]
    Setting(Box<tilewright_runtime::Error>),
    /// A pass made a graph that does not fit together.
    #[error("the graph cannot be optimised: {0}")]
    Optimise(#[from] BuildError),
    /// A graph of kernels does not fit together.
    #[error("the graph of kernels cannot be loaded: {0}")]
    Recorded(String),
    /// A name is none of the model's inputs.
    #[error("the model has no input `{name}`; its inputs are {known}")]
    UnknownInput {
        /// The name.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// An input is not given.
    #[error("input `{0}` is missing")]
    MissingInput(String),
    /// An input has the wrong element type or shape.
    #[error("input `{name}`: expected {expected}, found {element}{shape:?}{reason}")]
    Input {
        /// The input.
        name: String,
        /// Its type.
        expected: String,
        /// The element type that was given.
        element: ElementType,
        /// The shape that was given.
        shape: Vec<usize>,
        /// Which size contradicts which.
        reason: String,
    },
    /// A node failed while the model ran.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The run was asked to end; see [`Interruption`](crate::Interruption).
    #[error("the run was interrupted")]
    Interrupted,
    /// A kernel failed while the model ran.
    #[error("node `{node}`: {source}")]
    Kernel {
        /// The node that the kernel computes, with those that are fused into it.
        node: String,
        /// Why.
        source: Box<tilewright_runtime::Error>,
    },
    /// A device has no memory left, or fails.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// An operator failed while the model ran.
    #[error("node `{node}`: {reason}")]
    Operator {
        /// The node.
        node: String,
        /// Why.
        reason: String,
    },
    /// A result cannot be made.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// The intermediates do not fit into memory.
    #[error("{bytes} bytes of intermediates do not fit into memory")]
    Memory {
        /// How many there are.
        bytes: usize,
    },
}

//! The definition as it was recorded: an imperative tree, in the user's order.

use super::value::{Clock, TensorNumber, Value};
use crate::build::UpdateOp;
use crate::build::error::SourceLocation;
use crate::dtype::DType;
use crate::ids::VarId;

/// Everything the builder was told.
#[derive(Debug)]
pub(in crate::build) struct Recording {
    pub(in crate::build) name: String,
    /// Symbolic dimensions and compile-time parameters, in order; the position is the variable's id.
    pub(in crate::build) dims: Vec<String>,
    pub(in crate::build) scalars: Vec<(String, DType)>,
    pub(in crate::build) tensors: Vec<Tensor>,
    pub(in crate::build) loops: Vec<Loop>,
    pub(in crate::build) bindings: Vec<Binding>,
    pub(in crate::build) body: Vec<Node>,
    pub(in crate::build) outputs: Vec<TensorNumber>,
    /// How far a product may be off, as it was given.
    pub(in crate::build) accuracy: Option<f64>,
    /// Whether products with padding are formed.
    pub(in crate::build) multiplies_padding: bool,
    /// How many writes were recorded.
    pub(in crate::build) clock: Clock,
}

/// The role of a tensor in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::build) enum Role {
    Input,
    Constant,
    InOut,
    /// Declared in the definition: an intermediate, or an output when it is returned.
    Local,
    /// A scalar variable that is assigned more than once.
    Accumulator,
}

/// A tensor, or an accumulator, which is a tensor without dimensions.
#[derive(Debug)]
pub(in crate::build) struct Tensor {
    pub(in crate::build) name: String,
    /// `None` until inferred, for an accumulator that starts from a literal.
    pub(in crate::build) dtype: Option<DType>,
    pub(in crate::build) shape: Vec<Value>,
    pub(in crate::build) role: Role,
    /// The loops around the declaration, outermost first.
    pub(in crate::build) loops: Vec<usize>,
    pub(in crate::build) location: Option<SourceLocation>,
}

/// `for name in (start..end).step_by(step)`
#[derive(Debug)]
pub(in crate::build) struct Loop {
    pub(in crate::build) name: String,
    pub(in crate::build) start: Value,
    pub(in crate::build) end: Value,
    pub(in crate::build) step: i64,
    pub(in crate::build) location: SourceLocation,
}

/// `let name = value`, or the condition of an `if`.
#[derive(Debug)]
pub(in crate::build) struct Binding {
    pub(in crate::build) name: String,
    pub(in crate::build) value: Value,
    /// The name used as a value.
    pub(in crate::build) bound: Value,
    pub(in crate::build) location: SourceLocation,
    /// How many loops are around it.
    pub(in crate::build) depth: usize,
    /// The time at which it is evaluated.
    pub(in crate::build) clock: Clock,
}

/// One recorded statement.
#[derive(Debug)]
pub(in crate::build) enum Node {
    For {
        number: usize,
        body: Vec<Node>,
    },
    If {
        condition: usize,
        then: Vec<Node>,
        otherwise: Vec<Node>,
    },
    Store(Write),
    /// The initial value of a whole tensor or accumulator.
    Initialise {
        target: TensorNumber,
        value: Value,
        clock: Clock,
    },
    Bind(usize),
}

/// `target[indices] op= value`
#[derive(Clone, Debug)]
pub(in crate::build) struct Write {
    pub(in crate::build) target: TensorNumber,
    pub(in crate::build) indices: Vec<Value>,
    pub(in crate::build) op: UpdateOp,
    pub(in crate::build) value: Value,
    pub(in crate::build) location: SourceLocation,
    pub(in crate::build) clock: Clock,
}

impl Recording {
    /// The variable of a dimension.
    pub(in crate::build) fn dim_var(position: usize) -> VarId {
        VarId(position as u32)
    }
}

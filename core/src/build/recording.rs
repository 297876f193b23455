//! The definition as it was recorded: an imperative tree, in the user's order.

use super::UpdateOp;
use super::error::SourceLocation;
use super::value::{Clock, TensorNumber, Value};
use crate::dtype::DType;
use crate::ids::VarId;

/// Everything the builder was told.
#[derive(Debug)]
pub(super) struct Recording {
    pub(super) name: String,
    /// Symbolic dimensions and compile-time parameters, in order; the position is the variable's id.
    pub(super) dims: Vec<String>,
    pub(super) scalars: Vec<(String, DType)>,
    pub(super) tensors: Vec<Tensor>,
    pub(super) loops: Vec<Loop>,
    pub(super) bindings: Vec<Binding>,
    pub(super) body: Vec<Node>,
    pub(super) outputs: Vec<TensorNumber>,
    /// How far a product may be off, as it was given.
    pub(super) accuracy: Option<f64>,
    /// How many writes were recorded.
    pub(super) clock: Clock,
}

/// The role of a tensor in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
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
pub(super) struct Tensor {
    pub(super) name: String,
    /// `None` until inferred, for an accumulator that starts from a literal.
    pub(super) dtype: Option<DType>,
    pub(super) shape: Vec<Value>,
    pub(super) role: Role,
    /// The loops around the declaration, outermost first.
    pub(super) loops: Vec<usize>,
    pub(super) location: Option<SourceLocation>,
}

/// `for name in (start..end).step_by(step)`
#[derive(Debug)]
pub(super) struct Loop {
    pub(super) name: String,
    pub(super) start: Value,
    pub(super) end: Value,
    pub(super) step: i64,
    pub(super) location: SourceLocation,
}

/// `let name = value`, or the condition of an `if`.
#[derive(Debug)]
pub(super) struct Binding {
    pub(super) name: String,
    pub(super) value: Value,
    /// The name used as a value.
    pub(super) bound: Value,
    pub(super) location: SourceLocation,
    /// How many loops are around it.
    pub(super) depth: usize,
    /// The time at which it is evaluated.
    pub(super) clock: Clock,
}

/// One recorded statement.
#[derive(Debug)]
pub(super) enum Node {
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
pub(super) struct Write {
    pub(super) target: TensorNumber,
    pub(super) indices: Vec<Value>,
    pub(super) op: UpdateOp,
    pub(super) value: Value,
    pub(super) location: SourceLocation,
    pub(super) clock: Clock,
}

impl Recording {
    /// The variable of a dimension.
    pub(super) fn dim_var(position: usize) -> VarId {
        VarId(position as u32)
    }
}

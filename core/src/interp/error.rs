//! Errors of the interpreter.

use crate::tensor::ShapeError;

/// Why a program could not be executed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InterpError {
    /// The program breaks an invariant that the verifier checks.
    #[error("malformed program: {0}")]
    Malformed(String),
    /// The number of arguments of one sort differs from the program's.
    #[error("{expected} {sort} expected, {found} given")]
    Count {
        /// `dimensions`, `scalars` or `tensors`.
        sort: &'static str,
        /// The number in the program.
        expected: usize,
        /// The number given.
        found: usize,
    },
    /// A dimension or extent is negative.
    #[error("dimension `{name}` = {value} is negative")]
    Dimension {
        /// The dimension, or the tensor whose shape has it.
        name: String,
        /// Its value.
        value: i64,
    },
    /// A tensor's element type or shape is not what its parameter says.
    #[error("tensor `{name}` must be {expected}, found {found}")]
    Argument {
        /// The parameter.
        name: String,
        /// The element type and shape of the parameter.
        expected: String,
        /// Element type and shape of the argument.
        found: String,
    },
    /// An intermediate does not fit into memory.
    #[error("intermediate `{name}`: {error}")]
    Memory {
        /// The intermediate.
        name: String,
        /// The reason.
        error: ShapeError,
    },
    /// An access outside a tensor.
    #[error("{action} of `{buffer}`{indices:?} is outside its shape {shape:?}{}", in_block(.block))]
    OutOfBounds {
        /// `load` or `store`.
        action: &'static str,
        /// The tensor.
        buffer: String,
        /// The index of each dimension.
        indices: Vec<i64>,
        /// The extent of each dimension.
        shape: Vec<i64>,
        /// The block that made the access, when it is in one.
        block: Option<String>,
    },
    /// A load of an element that nothing has written: the order of statements is wrong.
    #[error("load of `{buffer}`{indices:?} before anything wrote it{}", in_block(.block))]
    Undefined {
        /// The intermediate or `out` tensor.
        buffer: String,
        /// The index of each dimension.
        indices: Vec<i64>,
        /// The block that loaded it, when it is in one.
        block: Option<String>,
    },
    /// Two threads of a block access an element, and one of them stores it, without a barrier in between.
    #[error(
        "{action} of `{buffer}`{indices:?} by thread {thread}, which thread {other} accesses as well: a barrier is missing"
    )]
    Race {
        /// `load`, `store`, or `arrival` of an asynchronous store.
        action: &'static str,
        /// The tensor.
        buffer: String,
        /// The index of each dimension.
        indices: Vec<i64>,
        /// The number of the thread in its block.
        thread: u32,
        /// The number of the other one.
        other: u32,
    },
    /// An access to an element that is stored asynchronously, before its thread has waited for it.
    #[error(
        "{action} of `{buffer}`{indices:?} while an asynchronous store to it is under way: a wait is missing"
    )]
    UnderWay {
        /// `load` or `store`.
        action: &'static str,
        /// The tensor.
        buffer: String,
        /// The index of each dimension.
        indices: Vec<i64>,
    },
    /// Some threads of a block wait at a barrier that others do not reach.
    #[error(
        "some threads of a block wait at a barrier that others do not come to; put it outside of conditions on threads"
    )]
    DivergentBarrier,
    /// An element of an `out` tensor was never written.
    #[error("`{buffer}`{indices:?} was never written, although `{buffer}` is an output")]
    Incomplete {
        /// The `out` tensor.
        buffer: String,
        /// The index of the first such element.
        indices: Vec<i64>,
    },
    /// An index that depends on data lay outside its range.
    #[error("an index read from data is {value}, outside 0..{extent}{}", in_block(.block))]
    IndexOutOfRange {
        /// The index.
        value: i64,
        /// The extent of its range.
        extent: i64,
        /// The block that computed it, when it is in one.
        block: Option<String>,
    },
    /// An iterator was bound to a value outside its domain, although all guards held.
    #[error("iterator `{iter}` of block `{block}` is {value}, outside 0..{extent}: a guard is missing")]
    OutsideDomain {
        /// The block.
        block: String,
        /// The iterator.
        iter: String,
        /// Its value.
        value: i64,
        /// The extent of its domain.
        extent: i64,
    },
}

fn in_block(block: &Option<String>) -> String {
    block.as_ref().map(|block| format!(" (block `{block}`)")).unwrap_or_default()
}

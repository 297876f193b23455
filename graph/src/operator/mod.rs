//! The table of operators: names, arguments, attributes, and what they compute.
//!
//! One row says everything about an operator. Its name is that of the text form; ONNX's name is beside it. The semantics
//! are those of ONNX's newest version of the operator; what older versions mean is expressed by these when a file is
//! imported.

mod elementwise;
mod evaluate;
mod index;
mod lanes;
mod linear;
mod reduce;
mod select;
mod shape;
mod spec;
mod table;
mod window;

pub(crate) use evaluate::refuse;
pub use evaluate::{Arguments, Fault, Value};
pub use spec::{Arity, Evaluate, Operator, attribute};
pub use table::{all, find, find_onnx};

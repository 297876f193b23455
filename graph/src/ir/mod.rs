//! The representation of graphs.
//!
//! A [`Module`] holds functions, a [`Function`] binds values in order, and an [`Operation`] computes them: a call to an
//! operator of [one table](crate::operator), to a tensor program, to a function outside or of the module, or control flow
//! with bodies inside. Every value has a [`Type`], whose shape is made of [symbolic integers](crate::symbolic::SymInt).
//! [`crate::interpret`] defines the meaning of a function.

mod attribute;
mod function;
mod types;
mod verify;

pub use attribute::{Attribute, AttributeKind, Attributes};
pub use function::{
    Binding, Body, Call, Function, Loop, Module, Operation, Scan, ScanOrder, ScanTensor, ValueId, ValueInfo,
};
pub use types::{Shape, TensorType, Type};
pub use verify::Malformed;

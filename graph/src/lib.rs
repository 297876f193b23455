#![forbid(unsafe_code)]
//! The level above kernels: whole models as graphs of operators.
//!
//! | module | holds |
//! |---|---|
//! | [`symbolic`] | integers that depend on sizes known only at run time |
//! | [`tensor`] | tensors in host memory, of every element type that models use |
//! | [`ir`] | the representation: functions of dataflow |
//! | [`operator`] | the table of operators |
//! | [`onnx`] | ONNX files |

pub mod ir;
pub mod onnx;
pub mod operator;
pub mod symbolic;
pub mod tensor;

#![forbid(unsafe_code)]
// Code that macros repeat for all element types clones elements, of which only strings are not `Copy`.
#![allow(clippy::clone_on_copy)]
//! The level above kernels: whole models as graphs of operators.
//!
//! | module | holds |
//! |---|---|
//! | [`symbolic`] | integers that depend on sizes known only at run time |
//! | [`tensor`] | tensors in host memory, of every element type that models use |
//! | [`build`] | building graphs call by call |
//! | [`fuse`] | which calls become one kernel |
//! | [`interpret`] | what a graph means |
//! | [`ir`] | the representation: functions of dataflow |
//! | [`legalise`](mod@legalise) | kernels that compute operators, alone and fused |
//! | [`operator`] | the table of operators |
//! | [`part`] | groups that are executed together |
//! | [`pass`] | functions that mean the same and do less |
//! | [`text`] | the text form of graphs |
//! | [`onnx`] | ONNX files |

pub mod build;
mod deduce;
pub mod fuse;
pub mod interpret;
pub mod ir;
pub mod legalise;
pub mod onnx;
pub mod operator;
pub mod part;
pub mod pass;
pub mod symbolic;
pub mod tensor;
pub mod text;

#![forbid(unsafe_code)]
//! Static quantisation of models: the products of a model of floats become products of bytes.
//!
//! [`quantise`] runs a model on calibration data, chooses a scale and a zero point for the input of each convolution and matrix product
//! and a scale for each channel of its weights, and writes both around the product as pairs of `quantize_linear` and
//! `dequantize_linear`. The result is a function like any other: a session computes its products on integers, and
//! [`onnx::Model::of_function`](tilewright_graph::onnx::Model::of_function) makes a file of it that other programs read.
//!
//! | module | holds |
//! |---|---|
//! | `options` | what a caller decides |
//! | `product` | the products of a function that can be quantised |
//! | `calibrate` | running a function on samples, and what is observed there |
//! | `range` | from observed numbers to the range that is kept: by extremes, percentiles, entropy |
//! | `affine` | scales and zero points, integers of numbers |
//! | `insert` | the function with conversions around its products |
//! | `loss` | how far two tensors differ |
//! | `report` | what was quantised, what was not, and what it costs |

mod affine;
mod calibrate;
mod error;
mod insert;
mod loss;
mod options;
mod product;
mod quantise;
mod range;
mod report;

pub use calibrate::Sample;
pub use error::Error;
pub use loss::Loss;
pub use options::{Activations, Method, Options, UnknownOption, Weights};
pub use quantise::{Quantised, quantise};
pub use report::{Layer, Left, OutputLoss, Report};

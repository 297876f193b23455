//! Kernels on integers that stand for numbers: `(integer - zero point) · scale`.
//!
//! A product of quantised tensors is formed of the integers as they are, `Σ a·b`, so that instructions for products of bytes
//! fit; what the zero points contribute is added afterwards, and only where a zero point is not known to be zero:
//! `Σ(a-p)(b-q) = Σa·b - q·Σa - Σp·(b-q)`, of which the last sum is formed once where p and b are constant (Jain et al., "Efficient Execution of Quantized Deep Learning Models", 2020).
//!
//! | module | holds |
//! |---|---|
//! | `parameter` | scales and zero points: one for all, for each place of a dimension, or for each block |
//! | `convert` | from numbers to integers and back |
//! | `lookup` | from bytes to elements of a table |
//! | `dynamic` | to integers whose scale and zero point follow from the data |
//! | `product` | products of matrices |
//! | `windows` | convolutions |
//! | `zero_terms` | the terms of a convolution's zero points, and the value of its padding |
//! | `blocks` | products with matrices whose integers share a scale in blocks |

mod blocks;
mod convert;
mod dynamic;
mod lookup;
mod parameter;
mod product;
mod windows;
mod zero_terms;

pub(crate) use blocks::block_product;
pub(crate) use convert::{dequantize, quantize, requantize};
pub(crate) use dynamic::dynamic_quantize;
pub(super) use dynamic::{byte_of, quantise_by_range, scale_of, zero_point_of};
pub(crate) use lookup::look_up;
pub(crate) use product::{matmul_integer, qlinear_matmul};
pub(crate) use windows::{conv_integer, qlinear_conv};

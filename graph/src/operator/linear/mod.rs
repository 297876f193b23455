//! Sums of products.

mod attention;
mod convolution;
mod deformed;
mod determinant;
mod einsum;
mod matmul;
mod transposed;

use crate::operator::Operator;

pub(super) use convolution::{ATTRIBUTES as CONVOLUTION_ATTRIBUTES, Convolution, add_bias};
pub(crate) use einsum::{Contraction, Label};
pub(super) use matmul::matmul_wide;
pub(crate) use transposed::Geometry as TransposedGeometry;

/// The products of tensors and weights.
pub(super) const PRODUCTS: &[&[Operator]] = &[matmul::OPERATORS, convolution::OPERATORS];

/// The rows of this folder.
pub(super) const TABLES: &[&[Operator]] = &[
    matmul::OPERATORS,
    einsum::OPERATORS,
    attention::OPERATORS,
    convolution::OPERATORS,
    transposed::OPERATORS,
    deformed::OPERATORS,
    determinant::OPERATORS,
];

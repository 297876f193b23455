//! Sums of products.

mod convolution;
mod einsum;
mod matmul;
mod transposed;

use crate::operator::Operator;

pub(crate) use matmul::matmul_wide;

/// The rows of this folder.
pub(super) const TABLES: &[&[Operator]] =
    &[matmul::OPERATORS, einsum::OPERATORS, convolution::OPERATORS, transposed::OPERATORS];

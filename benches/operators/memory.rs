//! Operators that do little with each element, so that memory decides their time.

use tilewright::{Tensor, tensor_kernel};

/// The same elements in another place.
#[tensor_kernel]
pub fn copy(x: &Tensor<f32, M, N>) -> Tensor<f32, M, N> {
    let mut y = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            y[[i, j]] = x[[i, j]];
        }
    }
    y
}

/// The sum of the products of two vectors' elements.
#[tensor_kernel]
pub fn dot(a: &Tensor<f32, N>, b: &Tensor<f32, N>) -> Tensor<f32, 1> {
    let mut y = Tensor::zeros();
    for i in 0..N {
        y[[0]] += a[[i]] * b[[i]];
    }
    y
}

/// The transposed matrix.
#[tensor_kernel]
pub fn transpose(x: &Tensor<f32, M, N>) -> Tensor<f32, N, M> {
    let mut y = Tensor::zeros();
    for j in 0..N {
        for i in 0..M {
            y[[j, i]] = x[[i, j]];
        }
    }
    y
}

/// The activation function GELU of a matrix plus a bias for each column.
#[tensor_kernel]
pub fn bias_gelu(x: &Tensor<f32, M, N>, bias: &Tensor<f32, N>) -> Tensor<f32, M, N> {
    let mut y = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            let v = x[[i, j]] + bias[[j]];
            y[[i, j]] = 0.5 * v * (1.0 + (v * 0.707_106_77).erf());
        }
    }
    y
}

/// The sum of two matrices.
#[tensor_kernel]
pub fn add(a: &Tensor<f32, M, N>, b: &Tensor<f32, M, N>) -> Tensor<f32, M, N> {
    let mut y = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            y[[i, j]] = a[[i, j]] + b[[i, j]];
        }
    }
    y
}

/// Each row with mean 0 and variance 1, scaled and shifted.
#[tensor_kernel]
pub fn layer_norm(
    x: &Tensor<f32, M, N>,
    scale: &Tensor<f32, N>,
    shift: &Tensor<f32, N>,
) -> Tensor<f32, M, N> {
    let mut y = Tensor::zeros();
    for i in 0..M {
        let mut sum = 0.0;
        for j in 0..N {
            sum += x[[i, j]];
        }
        let mean = sum / N as f32;
        let mut squares = 0.0;
        for j in 0..N {
            squares += (x[[i, j]] - mean) * (x[[i, j]] - mean);
        }
        let inverse = (squares / N as f32 + 1e-5).rsqrt();
        for j in 0..N {
            y[[i, j]] = (x[[i, j]] - mean) * inverse * scale[[j]] + shift[[j]];
        }
    }
    y
}

//! Products of matrices of `f32` whose accuracy allows forming them from `bf16` pieces: in 3, 6 and 9 products, on
//! machines with instructions for those.

use tilewright::{Tensor, tensor_kernel};

/// Each product may be off by 10⁻⁴ of itself.
#[tensor_kernel(accuracy = 1e-4)]
pub fn batch_matmul_3(a: &Tensor<f32, B, N, K>, b: &Tensor<f32, B, K, M>) -> Tensor<f32, B, N, M> {
    let mut c = Tensor::zeros();
    for n in 0..B {
        for i in 0..N {
            for j in 0..M {
                for k in 0..K {
                    c[[n, i, j]] += a[[n, i, k]] * b[[n, k, j]];
                }
            }
        }
    }
    c
}

/// Each product may be off by as much as rounding it costs in `f32`.
#[tensor_kernel(accuracy = 6e-8)]
pub fn batch_matmul_6(a: &Tensor<f32, B, N, K>, b: &Tensor<f32, B, K, M>) -> Tensor<f32, B, N, M> {
    let mut c = Tensor::zeros();
    for n in 0..B {
        for i in 0..N {
            for j in 0..M {
                for k in 0..K {
                    c[[n, i, j]] += a[[n, i, k]] * b[[n, k, j]];
                }
            }
        }
    }
    c
}

/// Products are exact, but numbers at the ends of the range may be lost.
#[tensor_kernel(accuracy = 0)]
pub fn batch_matmul_9(a: &Tensor<f32, B, N, K>, b: &Tensor<f32, B, K, M>) -> Tensor<f32, B, N, M> {
    let mut c = Tensor::zeros();
    for n in 0..B {
        for i in 0..N {
            for j in 0..M {
                for k in 0..K {
                    c[[n, i, j]] += a[[n, i, k]] * b[[n, k, j]];
                }
            }
        }
    }
    c
}

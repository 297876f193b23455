//! Attention, from queries, keys and values to results, without an intermediate between kernels.

use tilewright::{Tensor, tensor_kernel};

/// A mean of the rows of `v` for each row of `q`, weighted by how much it is like the rows of `k`.
#[tensor_kernel]
pub fn attention(
    q: &Tensor<f32, H, S, D>,
    k: &Tensor<f32, H, T, D>,
    v: &Tensor<f32, H, T, D>,
) -> Tensor<f32, H, S, D> {
    let mut scores: Tensor<f32, H, S, T> = Tensor::zeros();
    for h in 0..H {
        for i in 0..S {
            for j in 0..T {
                for d in 0..D {
                    scores[[h, i, j]] += q[[h, i, d]] * k[[h, j, d]];
                }
            }
        }
    }
    let mut weights: Tensor<f32, H, S, T> = Tensor::zeros();
    let mut y = Tensor::zeros();
    for h in 0..H {
        for i in 0..S {
            let mut largest = f32::NEG_INFINITY;
            for j in 0..T {
                largest = largest.max(scores[[h, i, j]]);
            }
            let mut sum = 0.0;
            for j in 0..T {
                let e = (scores[[h, i, j]] - largest).exp();
                weights[[h, i, j]] = e;
                sum += e;
            }
            for d in 0..D {
                for j in 0..T {
                    y[[h, i, d]] += weights[[h, i, j]] * v[[h, j, d]];
                }
            }
            for d in 0..D {
                y[[h, i, d]] /= sum;
            }
        }
    }
    y
}

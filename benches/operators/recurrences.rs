//! Recurrent layers, whose steps follow each other in time.

use tilewright::{Tensor, tensor_kernel};

/// h = tanh((W·h + U·x + b) / 16) for each step of each sequence; all states. Weights are out × in, as in ONNX. The factor keeps
/// differences by rounding from growing with time, for weights between −1 and 1 and up to some hundreds of states.
#[tensor_kernel]
pub fn recurrent(
    x: &Tensor<f32, B, T, I>,
    u: &Tensor<f32, H, I>,
    w: &Tensor<f32, H, H>,
    bias: &Tensor<f32, H>,
) -> Tensor<f32, B, T, H> {
    let mut y = Tensor::zeros();
    for b in 0..B {
        let mut state: Tensor<f32, H> = Tensor::zeros();
        let mut next: Tensor<f32, H> = Tensor::zeros();
        for t in 0..T {
            for j in 0..H {
                let mut sum = bias[[j]];
                for i in 0..I {
                    sum += u[[j, i]] * x[[b, t, i]];
                }
                for k in 0..H {
                    sum += w[[j, k]] * state[[k]];
                }
                next[[j]] = (sum * 0.0625).tanh();
            }
            for j in 0..H {
                state[[j]] = next[[j]];
                y[[b, t, j]] = next[[j]];
            }
        }
    }
    y
}

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

/// A recurrent layer of integers: bytes are mapped by a matrix of bytes, scaled and moved by the inputs in each step of each sequence.
#[tensor_kernel]
pub fn recurrent_bytes(x: &Tensor<i8, B, T, H>, w: &Tensor<i8, H, H>) -> Tensor<u8, B, T, H> {
    let mut y = Tensor::zeros();
    for b in 0..B {
        let mut state: Tensor<u8, H> = Tensor::zeros();
        let mut next: Tensor<i32, H> = Tensor::zeros();
        for t in 0..T {
            for j in 0..H {
                let mut sum = 0i32;
                for k in 0..H {
                    sum += w[[j, k]] as i32 * state[[k]] as i32;
                }
                next[[j]] = (sum >> 6) + x[[b, t, j]] as i32;
            }
            for j in 0..H {
                state[[j]] = next[[j]].max(0).min(255) as u8;
                y[[b, t, j]] = state[[j]];
            }
        }
    }
    y
}

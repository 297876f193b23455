//! Functions of scalars for kernels of other crates, and a kernel that other crates call.

use tilewright::prelude::*;

/// x · σ(x)
#[tensor_fn]
pub fn silu(x: f32) -> f32 {
    x / (1.0 + (-x).exp())
}

/// `a` where `share` is 1, `b` where it is 0, and what lies between elsewhere.
#[tensor_fn]
pub fn mix<T: Float>(a: T, b: T, share: T) -> T {
    b + (a - b) * share
}

/// A table of kernels that belong to no value.
#[derive(Clone, Copy, Debug)]
pub struct Gates;

#[tensor_kernel]
impl Gates {
    /// silu(x) · y
    #[tensor_kernel]
    pub fn swiglu(x: &Tensor<f32, N>, y: &Tensor<f32, N>) -> Tensor<f32, N> {
        let mut z = Tensor::zeros();
        for i in 0..N {
            z[[i]] = silu(x[[i]]) * y[[i]];
        }
        z
    }
}

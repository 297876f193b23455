//! Products of `bf16`, summed up in `f32`.

use tilewright::{Tensor, tensor_kernel};

/// Activations times weights, which stand input × output.
#[tensor_kernel]
pub fn matmul_bf16(a: &Tensor<bf16, M, K>, b: &Tensor<bf16, K, N>) -> Tensor<f32, M, N> {
    let mut c = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            for k in 0..K {
                c[[i, j]] += a[[i, k]] as f32 * b[[k, j]] as f32;
            }
        }
    }
    c
}

/// Activations times weights that stay the same.
#[tensor_kernel]
pub fn weighted_bf16(a: &Tensor<bf16, M, K>, #[constant] b: &Tensor<bf16, K, N>) -> Tensor<f32, M, N> {
    let mut c = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            for k in 0..K {
                c[[i, j]] += a[[i, k]] as f32 * b[[k, j]] as f32;
            }
        }
    }
    c
}

/// A product of matrices with sums that are rounded to `bf16` in the end.
#[tensor_kernel]
pub fn matmul_bf16_rounded(a: &Tensor<bf16, M, K>, b: &Tensor<bf16, K, N>) -> Tensor<bf16, M, N> {
    let mut c: Tensor<f32, M, N> = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            for k in 0..K {
                c[[i, j]] += a[[i, k]] as f32 * b[[k, j]] as f32;
            }
        }
    }
    let mut y = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            y[[i, j]] = c[[i, j]] as bf16;
        }
    }
    y
}

/// Activations times weights, which stand output × input.
#[tensor_kernel]
pub fn linear_bf16(a: &Tensor<bf16, M, K>, b: &Tensor<bf16, N, K>) -> Tensor<f32, M, N> {
    let mut c = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            for k in 0..K {
                c[[i, j]] += a[[i, k]] as f32 * b[[j, k]] as f32;
            }
        }
    }
    c
}

/// Convolution without padding, channels last.
#[tensor_kernel]
pub fn conv2d_nhwc_bf16(
    x: &Tensor<bf16, N, H, W, CI>,
    w: &Tensor<bf16, KH, KW, CI, CO>,
) -> Tensor<f32, N, { H - KH + 1 }, { W - KW + 1 }, CO> {
    let mut y = Tensor::zeros();
    for n in 0..N {
        for h in 0..H - KH + 1 {
            for v in 0..W - KW + 1 {
                for co in 0..CO {
                    for kh in 0..KH {
                        for kw in 0..KW {
                            for ci in 0..CI {
                                y[[n, h, v, co]] +=
                                    x[[n, h + kh, v + kw, ci]] as f32 * w[[kh, kw, ci, co]] as f32;
                            }
                        }
                    }
                }
            }
        }
    }
    y
}

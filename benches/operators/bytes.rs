//! Products of bytes, summed up in 32-bit integers: what quantised models are made of.

use tilewright::{Tensor, tensor_kernel};

/// Unsigned activations times signed weights, which stand input × output.
#[tensor_kernel]
pub fn matmul_u8i8(a: &Tensor<u8, M, K>, b: &Tensor<i8, K, N>) -> Tensor<i32, M, N> {
    let mut c = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            for k in 0..K {
                c[[i, j]] += a[[i, k]] as i32 * b[[k, j]] as i32;
            }
        }
    }
    c
}

/// Signed activations times signed weights.
#[tensor_kernel]
pub fn matmul_i8i8(a: &Tensor<i8, M, K>, b: &Tensor<i8, K, N>) -> Tensor<i32, M, N> {
    let mut c = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            for k in 0..K {
                c[[i, j]] += a[[i, k]] as i32 * b[[k, j]] as i32;
            }
        }
    }
    c
}

/// Unsigned activations times unsigned weights.
#[tensor_kernel]
pub fn matmul_u8u8(a: &Tensor<u8, M, K>, b: &Tensor<u8, K, N>) -> Tensor<i32, M, N> {
    let mut c = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            for k in 0..K {
                c[[i, j]] += a[[i, k]] as i32 * b[[k, j]] as i32;
            }
        }
    }
    c
}

/// Signed activations times unsigned weights.
#[tensor_kernel]
pub fn matmul_i8u8(a: &Tensor<i8, M, K>, b: &Tensor<u8, K, N>) -> Tensor<i32, M, N> {
    let mut c = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            for k in 0..K {
                c[[i, j]] += a[[i, k]] as i32 * b[[k, j]] as i32;
            }
        }
    }
    c
}

/// Unsigned activations times signed weights that stay the same.
#[tensor_kernel]
pub fn weighted_u8i8(a: &Tensor<u8, M, K>, #[constant] b: &Tensor<i8, K, N>) -> Tensor<i32, M, N> {
    let mut c = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            for k in 0..K {
                c[[i, j]] += a[[i, k]] as i32 * b[[k, j]] as i32;
            }
        }
    }
    c
}

/// Signed activations times signed weights that stay the same.
#[tensor_kernel]
pub fn weighted_i8i8(a: &Tensor<i8, M, K>, #[constant] b: &Tensor<i8, K, N>) -> Tensor<i32, M, N> {
    let mut c = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            for k in 0..K {
                c[[i, j]] += a[[i, k]] as i32 * b[[k, j]] as i32;
            }
        }
    }
    c
}

/// Unsigned activations times signed weights, which stand output × input.
#[tensor_kernel]
pub fn linear_u8i8(a: &Tensor<u8, M, K>, b: &Tensor<i8, N, K>) -> Tensor<i32, M, N> {
    let mut c = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            for k in 0..K {
                c[[i, j]] += a[[i, k]] as i32 * b[[j, k]] as i32;
            }
        }
    }
    c
}

/// A matrix product for each element of a batch.
#[tensor_kernel]
pub fn batch_matmul_u8i8(a: &Tensor<u8, B, M, K>, b: &Tensor<i8, B, K, N>) -> Tensor<i32, B, M, N> {
    let mut c = Tensor::zeros();
    for s in 0..B {
        for i in 0..M {
            for j in 0..N {
                for k in 0..K {
                    c[[s, i, j]] += a[[s, i, k]] as i32 * b[[s, k, j]] as i32;
                }
            }
        }
    }
    c
}

/// Convolution, channels last.
#[tensor_kernel]
pub fn conv2d_nhwc_u8i8(
    x: &Tensor<u8, N, H, W, CI>,
    w: &Tensor<i8, KH, KW, CI, CO>,
    stride: usize,
    pad: usize,
) -> Tensor<i32, N, { (H + 2 * pad - KH) / stride + 1 }, { (W + 2 * pad - KW) / stride + 1 }, CO> {
    let mut padded: Tensor<u8, N, { H + 2 * pad }, { W + 2 * pad }, CI> = Tensor::zeros();
    for n in 0..N {
        for h in 0..H + 2 * pad {
            for v in 0..W + 2 * pad {
                for c in 0..CI {
                    padded[[n, h, v, c]] = if h >= pad && h < H + pad && v >= pad && v < W + pad {
                        x[[n, h - pad, v - pad, c]]
                    } else {
                        0
                    };
                }
            }
        }
    }
    let mut y = Tensor::zeros();
    for n in 0..N {
        for h in 0..(H + 2 * pad - KH) / stride + 1 {
            for v in 0..(W + 2 * pad - KW) / stride + 1 {
                for co in 0..CO {
                    for kh in 0..KH {
                        for kw in 0..KW {
                            for ci in 0..CI {
                                y[[n, h, v, co]] += padded[[n, h * stride + kh, v * stride + kw, ci]] as i32
                                    * w[[kh, kw, ci, co]] as i32;
                            }
                        }
                    }
                }
            }
        }
    }
    y
}

/// Convolution without padding, channels first.
#[tensor_kernel]
pub fn conv2d_nchw_u8i8(
    x: &Tensor<u8, N, CI, H, W>,
    w: &Tensor<i8, CO, CI, KH, KW>,
) -> Tensor<i32, N, CO, { H - KH + 1 }, { W - KW + 1 }> {
    let mut y = Tensor::zeros();
    for n in 0..N {
        for co in 0..CO {
            for h in 0..H - KH + 1 {
                for v in 0..W - KW + 1 {
                    for ci in 0..CI {
                        for kh in 0..KH {
                            for kw in 0..KW {
                                y[[n, co, h, v]] +=
                                    x[[n, ci, h + kh, v + kw]] as i32 * w[[co, ci, kh, kw]] as i32;
                            }
                        }
                    }
                }
            }
        }
    }
    y
}

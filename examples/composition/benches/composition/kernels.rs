//! The kernels of the experiment that the operators of the benchmarks do not have: layers of networks.

use tilewright::prelude::*;

/// A layer of a transformer: product, bias, and GELU by its usual approximation.
#[tensor_kernel]
pub fn dense_gelu(x: &Tensor<f32, M, K>, w: &Tensor<f32, K, N>, bias: &Tensor<f32, N>) -> Tensor<f32, M, N> {
    let mut y = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            let mut sum = 0.0;
            for k in 0..K {
                sum += x[[i, k]] * w[[k, j]];
            }
            let z = sum + bias[[j]];
            y[[i, j]] = 0.5 * z * (1.0 + (0.797_884_6 * (z + 0.044_715 * z * z * z)).tanh());
        }
    }
    y
}

/// Convolution with padding, bias and rectifier, channels last.
#[tensor_kernel]
pub fn conv2d_relu(
    x: &Tensor<f32, H, W, CI>,
    w: &Tensor<f32, KH, KW, CI, CO>,
    bias: &Tensor<f32, CO>,
    pad: usize,
) -> Tensor<f32, { H + 2 * pad - KH + 1 }, { W + 2 * pad - KW + 1 }, CO> {
    let mut padded: Tensor<f32, { H + 2 * pad }, { W + 2 * pad }, CI> = Tensor::zeros();
    for h in 0..H + 2 * pad {
        for v in 0..W + 2 * pad {
            for c in 0..CI {
                padded[[h, v, c]] = if h >= pad && h < H + pad && v >= pad && v < W + pad {
                    x[[h - pad, v - pad, c]]
                } else {
                    0.0
                };
            }
        }
    }
    let mut y = Tensor::zeros();
    for h in 0..H + 2 * pad - KH + 1 {
        for v in 0..W + 2 * pad - KW + 1 {
            for co in 0..CO {
                let mut sum = 0.0;
                for kh in 0..KH {
                    for kw in 0..KW {
                        for ci in 0..CI {
                            sum += padded[[h + kh, v + kw, ci]] * w[[kh, kw, ci, co]];
                        }
                    }
                }
                y[[h, v, co]] = (sum + bias[[co]]).max(0.0);
            }
        }
    }
    y
}

/// Attention: each row of `q` is compared with all rows of `k`, and gets a mean of the rows of `v`, weighted accordingly.
#[tensor_kernel]
pub fn attention(
    q: &Tensor<f32, H, S, D>,
    k: &Tensor<f32, H, S, D>,
    v: &Tensor<f32, H, S, D>,
    scale: f32,
) -> Tensor<f32, H, S, D> {
    let mut scores: Tensor<f32, H, S, S> = Tensor::zeros();
    for h in 0..H {
        for i in 0..S {
            for j in 0..S {
                for d in 0..D {
                    scores[[h, i, j]] += q[[h, i, d]] * k[[h, j, d]];
                }
            }
        }
    }
    let mut weights: Tensor<f32, H, S, S> = Tensor::zeros();
    let mut y = Tensor::zeros();
    for h in 0..H {
        for i in 0..S {
            let mut largest = f32::NEG_INFINITY;
            for j in 0..S {
                largest = largest.max(scores[[h, i, j]] * scale);
            }
            let mut sum = 0.0;
            for j in 0..S {
                let e = (scores[[h, i, j]] * scale - largest).exp();
                weights[[h, i, j]] = e;
                sum += e;
            }
            for d in 0..D {
                for j in 0..S {
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

/// Two layers of a network without what lies between and after them but a rectifier.
#[tensor_kernel]
pub fn two_layers(x: &Tensor<f32, M, D>, w: &Tensor<f32, D, H>, v: &Tensor<f32, H, O>) -> Tensor<f32, M, O> {
    let mut hidden: Tensor<f32, M, H> = Tensor::zeros();
    for i in 0..M {
        for h in 0..H {
            for d in 0..D {
                hidden[[i, h]] += x[[i, d]] * w[[d, h]];
            }
        }
    }
    let mut y = Tensor::zeros();
    for i in 0..M {
        for o in 0..O {
            for h in 0..H {
                y[[i, o]] += hidden[[i, h]].max(0.0) * v[[h, o]];
            }
        }
    }
    y
}

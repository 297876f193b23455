//! The operator set of the MetaSchedule paper (Shao et al. 2022) as kernel definitions.
//!
//! Shapes are channel-last and weights spatial × in × out, as in TVM's `te_workload`. Padding is a stage of
//! its own, which the schedule may compute wherever it likes.

use tilewright::{Tensor, tensor_kernel};

/// Convolution over one spatial dimension.
#[tensor_kernel]
pub fn conv1d(
    x: &Tensor<f32, N, L, CI>,
    w: &Tensor<f32, K, CI, CO>,
    stride: usize,
    pad: usize,
) -> Tensor<f32, N, { (L + 2 * pad - K) / stride + 1 }, CO> {
    let mut padded: Tensor<f32, N, { L + 2 * pad }, CI> = Tensor::zeros();
    for n in 0..N {
        for l in 0..L + 2 * pad {
            for c in 0..CI {
                padded[[n, l, c]] = if l >= pad && l < L + pad { x[[n, l - pad, c]] } else { 0.0 };
            }
        }
    }
    let mut y = Tensor::zeros();
    for n in 0..N {
        for l in 0..(L + 2 * pad - K) / stride + 1 {
            for co in 0..CO {
                for k in 0..K {
                    for ci in 0..CI {
                        y[[n, l, co]] += padded[[n, l * stride + k, ci]] * w[[k, ci, co]];
                    }
                }
            }
        }
    }
    y
}

/// Convolution over two spatial dimensions, dilated and grouped.
#[tensor_kernel]
pub fn conv2d(
    x: &Tensor<f32, N, H, W, CI>,
    w: &Tensor<f32, KH, KW, { CI / groups }, CO>,
    stride: usize,
    pad: usize,
    dilation: usize,
    groups: usize,
) -> Tensor<
    f32,
    N,
    { (H + 2 * pad - dilation * (KH - 1) - 1) / stride + 1 },
    { (W + 2 * pad - dilation * (KW - 1) - 1) / stride + 1 },
    CO,
> {
    let mut padded: Tensor<f32, N, { H + 2 * pad }, { W + 2 * pad }, CI> = Tensor::zeros();
    for n in 0..N {
        for h in 0..H + 2 * pad {
            for v in 0..W + 2 * pad {
                for c in 0..CI {
                    padded[[n, h, v, c]] = if h >= pad && h < H + pad && v >= pad && v < W + pad {
                        x[[n, h - pad, v - pad, c]]
                    } else {
                        0.0
                    };
                }
            }
        }
    }
    let mut y = Tensor::zeros();
    for n in 0..N {
        for h in 0..(H + 2 * pad - dilation * (KH - 1) - 1) / stride + 1 {
            for v in 0..(W + 2 * pad - dilation * (KW - 1) - 1) / stride + 1 {
                for co in 0..CO {
                    for kh in 0..KH {
                        for kw in 0..KW {
                            for ci in 0..CI / groups {
                                y[[n, h, v, co]] += padded[[
                                    n,
                                    h * stride + kh * dilation,
                                    v * stride + kw * dilation,
                                    co / (CO / groups) * (CI / groups) + ci,
                                ]] * w[[kh, kw, ci, co]];
                            }
                        }
                    }
                }
            }
        }
    }
    y
}

/// Convolution over three spatial dimensions.
#[tensor_kernel]
pub fn conv3d(
    x: &Tensor<f32, N, D, H, W, CI>,
    w: &Tensor<f32, KD, KH, KW, CI, CO>,
    stride: usize,
    pad: usize,
) -> Tensor<
    f32,
    N,
    { (D + 2 * pad - KD) / stride + 1 },
    { (H + 2 * pad - KH) / stride + 1 },
    { (W + 2 * pad - KW) / stride + 1 },
    CO,
> {
    let mut padded: Tensor<f32, N, { D + 2 * pad }, { H + 2 * pad }, { W + 2 * pad }, CI> = Tensor::zeros();
    for n in 0..N {
        for d in 0..D + 2 * pad {
            for h in 0..H + 2 * pad {
                for v in 0..W + 2 * pad {
                    for c in 0..CI {
                        padded[[n, d, h, v, c]] = if d >= pad
                            && d < D + pad
                            && h >= pad
                            && h < H + pad
                            && v >= pad
                            && v < W + pad
                        {
                            x[[n, d - pad, h - pad, v - pad, c]]
                        } else {
                            0.0
                        };
                    }
                }
            }
        }
    }
    let mut y = Tensor::zeros();
    for n in 0..N {
        for d in 0..(D + 2 * pad - KD) / stride + 1 {
            for h in 0..(H + 2 * pad - KH) / stride + 1 {
                for v in 0..(W + 2 * pad - KW) / stride + 1 {
                    for co in 0..CO {
                        for kd in 0..KD {
                            for kh in 0..KH {
                                for kw in 0..KW {
                                    for ci in 0..CI {
                                        y[[n, d, h, v, co]] += padded
                                            [[n, d * stride + kd, h * stride + kh, v * stride + kw, ci]]
                                            * w[[kd, kh, kw, ci, co]];
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    y
}

/// Convolution of each channel with a filter of its own.
#[tensor_kernel]
pub fn depthwise_conv2d(
    x: &Tensor<f32, N, H, W, C>,
    w: &Tensor<f32, 1, KH, KW, C>,
    stride: usize,
    pad: usize,
) -> Tensor<f32, N, { (H + 2 * pad - KH) / stride + 1 }, { (W + 2 * pad - KW) / stride + 1 }, C> {
    let mut padded: Tensor<f32, N, { H + 2 * pad }, { W + 2 * pad }, C> = Tensor::zeros();
    for n in 0..N {
        for h in 0..H + 2 * pad {
            for v in 0..W + 2 * pad {
                for c in 0..C {
                    padded[[n, h, v, c]] = if h >= pad && h < H + pad && v >= pad && v < W + pad {
                        x[[n, h - pad, v - pad, c]]
                    } else {
                        0.0
                    };
                }
            }
        }
    }
    let mut y = Tensor::zeros();
    for n in 0..N {
        for h in 0..(H + 2 * pad - KH) / stride + 1 {
            for v in 0..(W + 2 * pad - KW) / stride + 1 {
                for c in 0..C {
                    for kh in 0..KH {
                        for kw in 0..KW {
                            y[[n, h, v, c]] +=
                                padded[[n, h * stride + kh, v * stride + kw, c]] * w[[0, kh, kw, c]];
                        }
                    }
                }
            }
        }
    }
    y
}

/// Transposed convolution, gathered: only the taps that meet an input element are visited.
///
/// Output row `h` meets input row `(h + pad - kh) / stride` where that is whole, that is for
/// `kh = (h + pad) % stride + stride · r`. The input is padded by the reach of `r` on both sides.
#[tensor_kernel]
pub fn conv2d_transpose(
    x: &Tensor<f32, N, H, W, CI>,
    w: &Tensor<f32, KH, KW, CI, CO>,
    stride: usize,
    pad: usize,
) -> Tensor<f32, N, { (H - 1) * stride + KH - 2 * pad }, { (W - 1) * stride + KW - 2 * pad }, CO> {
    let mut padded: Tensor<f32, N, { H + 2 * ((KH - 1) / stride) }, { W + 2 * ((KW - 1) / stride) }, CI> =
        Tensor::zeros();
    for n in 0..N {
        for h in 0..H + 2 * ((KH - 1) / stride) {
            for v in 0..W + 2 * ((KW - 1) / stride) {
                for c in 0..CI {
                    padded[[n, h, v, c]] = if h >= (KH - 1) / stride
                        && h < H + (KH - 1) / stride
                        && v >= (KW - 1) / stride
                        && v < W + (KW - 1) / stride
                    {
                        x[[n, h - (KH - 1) / stride, v - (KW - 1) / stride, c]]
                    } else {
                        0.0
                    };
                }
            }
        }
    }
    let mut y = Tensor::zeros();
    for n in 0..N {
        for h in 0..(H - 1) * stride + KH - 2 * pad {
            for v in 0..(W - 1) * stride + KW - 2 * pad {
                for co in 0..CO {
                    for r in 0..(KH + stride - 1) / stride {
                        for s in 0..(KW + stride - 1) / stride {
                            for ci in 0..CI {
                                let kh = (h + pad) % stride + stride * r;
                                let kw = (v + pad) % stride + stride * s;
                                y[[n, h, v, co]] += if kh < KH && kw < KW {
                                    padded[[
                                        n,
                                        (h + pad) / stride + (KH - 1) / stride - r,
                                        (v + pad) / stride + (KW - 1) / stride - s,
                                        ci,
                                    ]] * w[[kh, kw, ci, co]]
                                } else {
                                    0.0
                                };
                            }
                        }
                    }
                }
            }
        }
    }
    y
}

/// Convolution, bias, batch normalisation and rectifier.
#[tensor_kernel]
pub fn conv2d_bias_norm_relu(
    x: &Tensor<f32, N, H, W, CI>,
    w: &Tensor<f32, KH, KW, CI, CO>,
    bias: &Tensor<f32, CO>,
    offset: &Tensor<f32, CO>,
    scale: &Tensor<f32, CO>,
    stride: usize,
    pad: usize,
) -> Tensor<f32, N, { (H + 2 * pad - KH) / stride + 1 }, { (W + 2 * pad - KW) / stride + 1 }, CO> {
    let mut padded: Tensor<f32, N, { H + 2 * pad }, { W + 2 * pad }, CI> = Tensor::zeros();
    for n in 0..N {
        for h in 0..H + 2 * pad {
            for v in 0..W + 2 * pad {
                for c in 0..CI {
                    padded[[n, h, v, c]] = if h >= pad && h < H + pad && v >= pad && v < W + pad {
                        x[[n, h - pad, v - pad, c]]
                    } else {
                        0.0
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
                    let mut sum = 0.0;
                    for kh in 0..KH {
                        for kw in 0..KW {
                            for ci in 0..CI {
                                sum +=
                                    padded[[n, h * stride + kh, v * stride + kw, ci]] * w[[kh, kw, ci, co]];
                            }
                        }
                    }
                    y[[n, h, v, co]] = ((sum + bias[[co]]) * scale[[co]] + offset[[co]]).max(0.0);
                }
            }
        }
    }
    y
}

/// Matrix product for each element of a batch.
#[tensor_kernel]
pub fn batch_matmul(a: &Tensor<f32, B, N, K>, b: &Tensor<f32, B, K, M>) -> Tensor<f32, B, N, M> {
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

/// The scores of attention: queries times transposed keys, for each head.
#[tensor_kernel]
pub fn transpose_batch_matmul(
    q: &Tensor<f32, B, S, H, D>,
    v: &Tensor<f32, B, S, H, D>,
) -> Tensor<f32, B, H, S, S> {
    let mut y = Tensor::zeros();
    for b in 0..B {
        for h in 0..H {
            for i in 0..S {
                for j in 0..S {
                    for k in 0..D {
                        y[[b, h, i, j]] += q[[b, i, h, k]] * v[[b, j, h, k]];
                    }
                }
            }
        }
    }
    y
}

/// The Euclidean norm of each matrix of a batch.
#[tensor_kernel]
pub fn norm(a: &Tensor<f32, B, M, N>) -> Tensor<f32, B> {
    let mut y = Tensor::zeros();
    for b in 0..B {
        let mut sum = 0.0;
        for i in 0..M {
            for j in 0..N {
                sum += a[[b, i, j]] * a[[b, i, j]];
            }
        }
        y[[b]] = sum.sqrt();
    }
    y
}

/// Softmax of each row.
#[tensor_kernel]
pub fn softmax(x: &Tensor<f32, M, N>) -> Tensor<f32, M, N> {
    let mut y = Tensor::zeros();
    for i in 0..M {
        let mut largest = f32::NEG_INFINITY;
        for j in 0..N {
            largest = largest.max(x[[i, j]]);
        }
        let mut sum = 0.0;
        for j in 0..N {
            let e = (x[[i, j]] - largest).exp();
            y[[i, j]] = e;
            sum += e;
        }
        let inverse = 1.0 / sum;
        for j in 0..N {
            y[[i, j]] *= inverse;
        }
    }
    y
}

//! Convolutions of quantised models: bytes by weights that stay the same, channels last, with and without the requantisation of their sums.

use tilewright::{Tensor, tensor_kernel};

/// Unsigned activations times signed weights.
#[tensor_kernel]
pub fn weighted_conv2d_u8i8(
    x: &Tensor<u8, N, H, W, CI>,
    #[constant] w: &Tensor<i8, KH, KW, CI, CO>,
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

/// Signed activations times signed weights.
#[tensor_kernel]
pub fn weighted_conv2d_i8i8(
    x: &Tensor<i8, N, H, W, CI>,
    #[constant] w: &Tensor<i8, KH, KW, CI, CO>,
    stride: usize,
    pad: usize,
) -> Tensor<i32, N, { (H + 2 * pad - KH) / stride + 1 }, { (W + 2 * pad - KW) / stride + 1 }, CO> {
    let mut padded: Tensor<i8, N, { H + 2 * pad }, { W + 2 * pad }, CI> = Tensor::zeros();
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

/// Unsigned activations; the sums become bytes again, with a bias and a scale for each channel.
#[tensor_kernel]
pub fn requantised_conv2d_u8i8(
    x: &Tensor<u8, N, H, W, CI>,
    #[constant] w: &Tensor<i8, KH, KW, CI, CO>,
    #[constant] bias: &Tensor<i32, CO>,
    #[constant] scale: &Tensor<f32, CO>,
    stride: usize,
    pad: usize,
) -> Tensor<u8, N, { (H + 2 * pad - KH) / stride + 1 }, { (W + 2 * pad - KW) / stride + 1 }, CO> {
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
    let mut sums: Tensor<
        i32,
        N,
        { (H + 2 * pad - KH) / stride + 1 },
        { (W + 2 * pad - KW) / stride + 1 },
        CO,
    > = Tensor::zeros();
    for n in 0..N {
        for h in 0..(H + 2 * pad - KH) / stride + 1 {
            for v in 0..(W + 2 * pad - KW) / stride + 1 {
                for co in 0..CO {
                    for kh in 0..KH {
                        for kw in 0..KW {
                            for ci in 0..CI {
                                sums[[n, h, v, co]] += padded[[n, h * stride + kh, v * stride + kw, ci]]
                                    as i32
                                    * w[[kh, kw, ci, co]] as i32;
                            }
                        }
                    }
                }
            }
        }
    }
    let mut y = Tensor::zeros();
    for n in 0..N {
        for h in 0..(H + 2 * pad - KH) / stride + 1 {
            for v in 0..(W + 2 * pad - KW) / stride + 1 {
                for co in 0..CO {
                    let scaled = (sums[[n, h, v, co]] + bias[[co]]) as f32 * scale[[co]];
                    y[[n, h, v, co]] = (scaled.round_ties_even() + 7.0) as u8;
                }
            }
        }
    }
    y
}

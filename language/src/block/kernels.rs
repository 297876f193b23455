//! Products of a few rows of numbers with matrices of quantised blocks, one kernel for each block type.
//!
//! A kernel reads its matrix as `pack` holds it: in panels of `L` rows, and inside of a panel block by block, so that one pass over
//! a panel reads its memory in order. The integers of a block are multiplied as they are; the scale is applied to the sum of each block, and a
//! minimum to the sum of the numbers that it belongs to. Elements become numbers inside of the product and are never stored.

use tilewright::prelude::*;

/// A byte as a number.
#[tensor_fn]
pub(crate) fn number(bits: u8) -> f32 {
    bits as i32 as f32
}

/// `x · Wᵀ` with blocks of 32 4-bit integers, each less 8, and a scale.
#[tensor_kernel]
pub(crate) fn product_q4_0(
    x: &Tensor<f32, R, { B * 32 }>,
    quants: &Tensor<u8, P, B, 16, L>,
    scales: &Tensor<f16, P, B, L>,
) -> Tensor<f32, R, P, L> {
    let mut sums: Tensor<f32, R, P, B, L> = Tensor::zeros();
    for r in 0..R {
        for p in 0..P {
            for b in 0..B {
                for l in 0..L {
                    for j in 0..16 {
                        sums[[r, p, b, l]] += x[[r, b * 32 + j]] * (number(quants[[p, b, j, l]] & 15) - 8.0)
                            + x[[r, b * 32 + j + 16]] * (number(quants[[p, b, j, l]] >> 4) - 8.0);
                    }
                }
            }
        }
    }
    let mut y = Tensor::zeros();
    for r in 0..R {
        for p in 0..P {
            for l in 0..L {
                for b in 0..B {
                    y[[r, p, l]] += scales[[p, b, l]] as f32 * sums[[r, p, b, l]];
                }
            }
        }
    }
    y
}

/// `x · Wᵀ` with blocks of 32 4-bit integers, a scale and a minimum.
#[tensor_kernel]
pub(crate) fn product_q4_1(
    x: &Tensor<f32, R, { B * 32 }>,
    quants: &Tensor<u8, P, B, 16, L>,
    scales: &Tensor<f16, P, B, L>,
    minima: &Tensor<f16, P, B, L>,
) -> Tensor<f32, R, P, L> {
    let mut totals: Tensor<f32, R, B> = Tensor::zeros();
    for r in 0..R {
        for b in 0..B {
            for j in 0..32 {
                totals[[r, b]] += x[[r, b * 32 + j]];
            }
        }
    }
    let mut sums: Tensor<f32, R, P, B, L> = Tensor::zeros();
    for r in 0..R {
        for p in 0..P {
            for b in 0..B {
                for l in 0..L {
                    for j in 0..16 {
                        sums[[r, p, b, l]] += x[[r, b * 32 + j]] * number(quants[[p, b, j, l]] & 15)
                            + x[[r, b * 32 + j + 16]] * number(quants[[p, b, j, l]] >> 4);
                    }
                }
            }
        }
    }
    let mut y = Tensor::zeros();
    for r in 0..R {
        for p in 0..P {
            for l in 0..L {
                for b in 0..B {
                    y[[r, p, l]] += scales[[p, b, l]] as f32 * sums[[r, p, b, l]]
                        + minima[[p, b, l]] as f32 * totals[[r, b]];
                }
            }
        }
    }
    y
}

/// `x · Wᵀ` with blocks of 32 bytes and a scale.
#[tensor_kernel]
pub(crate) fn product_q8_0(
    x: &Tensor<f32, R, { B * 32 }>,
    quants: &Tensor<i8, P, B, 32, L>,
    scales: &Tensor<f16, P, B, L>,
) -> Tensor<f32, R, P, L> {
    let mut sums: Tensor<f32, R, P, B, L> = Tensor::zeros();
    for r in 0..R {
        for p in 0..P {
            for b in 0..B {
                for l in 0..L {
                    for j in 0..32 {
                        sums[[r, p, b, l]] += x[[r, b * 32 + j]] * quants[[p, b, j, l]] as f32;
                    }
                }
            }
        }
    }
    let mut y = Tensor::zeros();
    for r in 0..R {
        for p in 0..P {
            for l in 0..L {
                for b in 0..B {
                    y[[r, p, l]] += scales[[p, b, l]] as f32 * sums[[r, p, b, l]];
                }
            }
        }
    }
    y
}

/// `x · Wᵀ` with blocks of 256 4-bit integers; each 32 have a scale and a minimum of 6 bits, in units of the block's. The halves of 32 bytes
/// belong to neighbouring 32 elements.
#[tensor_kernel]
pub(crate) fn product_q4_k(
    x: &Tensor<f32, R, { B * 256 }>,
    quants: &Tensor<u8, P, B, 128, L>,
    factors: &Tensor<u8, P, B, 8, L>,
    least: &Tensor<u8, P, B, 8, L>,
    scales: &Tensor<f16, P, B, L>,
    minima: &Tensor<f16, P, B, L>,
) -> Tensor<f32, R, P, L> {
    let mut totals: Tensor<f32, R, B, 8> = Tensor::zeros();
    for r in 0..R {
        for b in 0..B {
            for c in 0..8 {
                for j in 0..32 {
                    totals[[r, b, c]] += x[[r, b * 256 + c * 32 + j]];
                }
            }
        }
    }
    let mut low: Tensor<f32, R, P, B, 4, L> = Tensor::zeros();
    let mut high: Tensor<f32, R, P, B, 4, L> = Tensor::zeros();
    for r in 0..R {
        for p in 0..P {
            for b in 0..B {
                for c in 0..4 {
                    for l in 0..L {
                        for j in 0..32 {
                            low[[r, p, b, c, l]] +=
                                x[[r, b * 256 + c * 64 + j]] * number(quants[[p, b, c * 32 + j, l]] & 15);
                        }
                        for j in 0..32 {
                            high[[r, p, b, c, l]] += x[[r, b * 256 + c * 64 + j + 32]]
                                * number(quants[[p, b, c * 32 + j, l]] >> 4);
                        }
                    }
                }
            }
        }
    }
    let mut y = Tensor::zeros();
    for r in 0..R {
        for p in 0..P {
            for l in 0..L {
                for b in 0..B {
                    for c in 0..4 {
                        y[[r, p, l]] += scales[[p, b, l]] as f32
                            * (number(factors[[p, b, c * 2, l]]) * low[[r, p, b, c, l]]
                                + number(factors[[p, b, c * 2 + 1, l]]) * high[[r, p, b, c, l]])
                            - minima[[p, b, l]] as f32
                                * (number(least[[p, b, c * 2, l]]) * totals[[r, b, c * 2]]
                                    + number(least[[p, b, c * 2 + 1, l]]) * totals[[r, b, c * 2 + 1]]);
                    }
                }
            }
        }
    }
    y
}

/// `x · Wᵀ` with blocks of 256 small integers; each 16 have a scale of 8 bits, in units of the block's.
#[tensor_kernel]
pub(crate) fn product_q6_k(
    x: &Tensor<f32, R, { B * 256 }>,
    quants: &Tensor<i8, P, B, 256, L>,
    factors: &Tensor<i8, P, B, 16, L>,
    scales: &Tensor<f16, P, B, L>,
) -> Tensor<f32, R, P, L> {
    let mut sums: Tensor<f32, R, P, B, 16, L> = Tensor::zeros();
    for r in 0..R {
        for p in 0..P {
            for b in 0..B {
                for c in 0..16 {
                    for l in 0..L {
                        for j in 0..16 {
                            sums[[r, p, b, c, l]] +=
                                x[[r, b * 256 + c * 16 + j]] * quants[[p, b, c * 16 + j, l]] as f32;
                        }
                    }
                }
            }
        }
    }
    let mut y = Tensor::zeros();
    for r in 0..R {
        for p in 0..P {
            for l in 0..L {
                for b in 0..B {
                    for c in 0..16 {
                        y[[r, p, l]] +=
                            scales[[p, b, l]] as f32 * (factors[[p, b, c, l]] as f32 * sums[[r, p, b, c, l]]);
                    }
                }
            }
        }
    }
    y
}

/// `x · Wᵀ` with single floats.
#[tensor_kernel]
pub(crate) fn product_f32(x: &Tensor<f32, R, K>, numbers: &Tensor<f32, P, K, L>) -> Tensor<f32, R, P, L> {
    let mut y = Tensor::zeros();
    for r in 0..R {
        for p in 0..P {
            for l in 0..L {
                for k in 0..K {
                    y[[r, p, l]] += x[[r, k]] * numbers[[p, k, l]];
                }
            }
        }
    }
    y
}

/// `x · Wᵀ` with half floats.
#[tensor_kernel]
pub(crate) fn product_f16(x: &Tensor<f32, R, K>, numbers: &Tensor<f16, P, K, L>) -> Tensor<f32, R, P, L> {
    let mut y = Tensor::zeros();
    for r in 0..R {
        for p in 0..P {
            for l in 0..L {
                for k in 0..K {
                    y[[r, p, l]] += x[[r, k]] * numbers[[p, k, l]] as f32;
                }
            }
        }
    }
    y
}

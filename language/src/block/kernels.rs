//! Products of rows of numbers with matrices of quantised blocks, one kernel for each block type.
//!
//! A kernel reads its matrix as `pack` holds it: in panels of `L` rows, and inside of a panel block by block, so that one pass over
//! a panel reads its memory in order. Elements become numbers inside of the product and are never stored.

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
    let mut y = Tensor::zeros();
    for r in 0..R {
        for p in 0..P {
            for l in 0..L {
                for b in 0..B {
                    for j in 0..16 {
                        y[[r, p, l]] += x[[r, b * 32 + j]]
                            * (scales[[p, b, l]] as f32 * (number(quants[[p, b, j, l]] & 15) - 8.0))
                            + x[[r, b * 32 + j + 16]]
                                * (scales[[p, b, l]] as f32 * (number(quants[[p, b, j, l]] >> 4) - 8.0));
                    }
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
    let mut y = Tensor::zeros();
    for r in 0..R {
        for p in 0..P {
            for l in 0..L {
                for b in 0..B {
                    for j in 0..16 {
                        y[[r, p, l]] += x[[r, b * 32 + j]]
                            * (scales[[p, b, l]] as f32 * number(quants[[p, b, j, l]] & 15)
                                + minima[[p, b, l]] as f32)
                            + x[[r, b * 32 + j + 16]]
                                * (scales[[p, b, l]] as f32 * number(quants[[p, b, j, l]] >> 4)
                                    + minima[[p, b, l]] as f32);
                    }
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
    let mut y = Tensor::zeros();
    for r in 0..R {
        for p in 0..P {
            for l in 0..L {
                for b in 0..B {
                    for j in 0..32 {
                        y[[r, p, l]] +=
                            x[[r, b * 32 + j]] * (scales[[p, b, l]] as f32 * quants[[p, b, j, l]] as f32);
                    }
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
    let mut y = Tensor::zeros();
    for r in 0..R {
        for p in 0..P {
            for l in 0..L {
                for b in 0..B {
                    for c in 0..4 {
                        for j in 0..32 {
                            y[[r, p, l]] += x[[r, b * 256 + c * 64 + j]]
                                * (scales[[p, b, l]] as f32
                                    * number(factors[[p, b, c * 2, l]])
                                    * number(quants[[p, b, c * 32 + j, l]] & 15)
                                    - minima[[p, b, l]] as f32 * number(least[[p, b, c * 2, l]]))
                                + x[[r, b * 256 + c * 64 + j + 32]]
                                    * (scales[[p, b, l]] as f32
                                        * number(factors[[p, b, c * 2 + 1, l]])
                                        * number(quants[[p, b, c * 32 + j, l]] >> 4)
                                        - minima[[p, b, l]] as f32 * number(least[[p, b, c * 2 + 1, l]]));
                        }
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
    let mut y = Tensor::zeros();
    for r in 0..R {
        for p in 0..P {
            for l in 0..L {
                for b in 0..B {
                    for c in 0..16 {
                        for j in 0..16 {
                            y[[r, p, l]] += x[[r, b * 256 + c * 16 + j]]
                                * (scales[[p, b, l]] as f32
                                    * factors[[p, b, c, l]] as f32
                                    * quants[[p, b, c * 16 + j, l]] as f32);
                        }
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

//! Panels of blocks as panels of numbers, for products with many rows, whose time would go into turning the same integers into numbers
//! again and again.

use tilewright::prelude::*;

use crate::block::kernels::number;

/// The low (`0`) or the high (`1`) half of a byte, as a number.
#[tensor_fn]
fn half_of(byte: u8, half: i64) -> f32 {
    number(if half == 0 { byte & 15 } else { byte >> 4 })
}

/// Blocks of 32 4-bit integers, each less 8, with a scale.
#[tensor_kernel]
pub(crate) fn numbers_q4_0(
    quants: &Tensor<u8, P, B, 16, L>,
    scales: &Tensor<f16, P, B, L>,
) -> Tensor<f32, P, B, 2, 16, L> {
    let mut y = Tensor::zeros();
    for p in 0..P {
        for b in 0..B {
            for h in 0..2 {
                for j in 0..16 {
                    for l in 0..L {
                        y[[p, b, h, j, l]] =
                            scales[[p, b, l]] as f32 * (half_of(quants[[p, b, j, l]], h as i64) - 8.0);
                    }
                }
            }
        }
    }
    y
}

/// Blocks of 32 4-bit integers with a scale and a minimum.
#[tensor_kernel]
pub(crate) fn numbers_q4_1(
    quants: &Tensor<u8, P, B, 16, L>,
    scales: &Tensor<f16, P, B, L>,
    minima: &Tensor<f16, P, B, L>,
) -> Tensor<f32, P, B, 2, 16, L> {
    let mut y = Tensor::zeros();
    for p in 0..P {
        for b in 0..B {
            for h in 0..2 {
                for j in 0..16 {
                    for l in 0..L {
                        y[[p, b, h, j, l]] = scales[[p, b, l]] as f32
                            * half_of(quants[[p, b, j, l]], h as i64)
                            + minima[[p, b, l]] as f32;
                    }
                }
            }
        }
    }
    y
}

/// Blocks of 32 bytes with a scale.
#[tensor_kernel]
pub(crate) fn numbers_q8_0(
    quants: &Tensor<i8, P, B, 32, L>,
    scales: &Tensor<f16, P, B, L>,
) -> Tensor<f32, P, B, 32, L> {
    let mut y = Tensor::zeros();
    for p in 0..P {
        for b in 0..B {
            for j in 0..32 {
                for l in 0..L {
                    y[[p, b, j, l]] = scales[[p, b, l]] as f32 * quants[[p, b, j, l]] as f32;
                }
            }
        }
    }
    y
}

/// Blocks of 256 4-bit integers; each 32 have a scale and a minimum of 6 bits.
#[tensor_kernel]
pub(crate) fn numbers_q4_k(
    quants: &Tensor<u8, P, B, 128, L>,
    factors: &Tensor<u8, P, B, 8, L>,
    least: &Tensor<u8, P, B, 8, L>,
    scales: &Tensor<f16, P, B, L>,
    minima: &Tensor<f16, P, B, L>,
) -> Tensor<f32, P, B, 4, 2, 32, L> {
    let mut y = Tensor::zeros();
    for p in 0..P {
        for b in 0..B {
            for c in 0..4 {
                for h in 0..2 {
                    for j in 0..32 {
                        for l in 0..L {
                            y[[p, b, c, h, j, l]] = scales[[p, b, l]] as f32
                                * number(factors[[p, b, c * 2 + h, l]])
                                * half_of(quants[[p, b, c * 32 + j, l]], h as i64)
                                - minima[[p, b, l]] as f32 * number(least[[p, b, c * 2 + h, l]]);
                        }
                    }
                }
            }
        }
    }
    y
}

/// Blocks of 256 small integers; each 16 have a scale of 8 bits.
#[tensor_kernel]
pub(crate) fn numbers_q6_k(
    quants: &Tensor<i8, P, B, 256, L>,
    factors: &Tensor<i8, P, B, 16, L>,
    scales: &Tensor<f16, P, B, L>,
) -> Tensor<f32, P, B, 16, 16, L> {
    let mut y = Tensor::zeros();
    for p in 0..P {
        for b in 0..B {
            for c in 0..16 {
                for j in 0..16 {
                    for l in 0..L {
                        y[[p, b, c, j, l]] = scales[[p, b, l]] as f32
                            * factors[[p, b, c, l]] as f32
                            * quants[[p, b, c * 16 + j, l]] as f32;
                    }
                }
            }
        }
    }
    y
}

/// Half floats.
#[tensor_kernel]
pub(crate) fn numbers_f16(halves: &Tensor<f16, P, K, L>) -> Tensor<f32, P, K, L> {
    let mut y = Tensor::zeros();
    for p in 0..P {
        for k in 0..K {
            for l in 0..L {
                y[[p, k, l]] = halves[[p, k, l]] as f32;
            }
        }
    }
    y
}

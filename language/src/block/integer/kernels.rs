//! Products of a few quantised rows with matrices of quantised blocks, one kernel for each block type.
//!
//! Rows are quantised by blocks of 32: each has a step and 32 signed bytes. The products of the bytes of a row with the integers of a block are
//! summed as integers, exactly; the scale of the block and the step of the row are applied to the sum. A matrix is in panels of `L` rows
//! whose integers stand in groups of four, as instructions for dot products of bytes read them. All integers of matrices are unsigned: an offset
//! of theirs is subtracted as a multiple of the sum of the row's bytes.

use tilewright::prelude::*;

use crate::block::kernels::number;

/// A number as a signed byte, in a block whose largest one is `largest`.
#[tensor_fn]
pub(crate) fn quantised(x: f32, largest: f32) -> i8 {
    (x * if largest > 0.0 { 127.0 / largest } else { 0.0 }).round_ties_even() as i8
}

/// Rows as steps and signed bytes, by blocks of 32, and the sum of each half of the bytes. The largest number of a block becomes 127 or −127, which is the
/// quantisation of `Q8_0` in GGUF files, with steps that stay single floats.
#[tensor_kernel]
pub(crate) fn quantise_rows(
    x: &Tensor<f32, R, B, 32>,
) -> (Tensor<i8, R, B, 32>, Tensor<f32, R, B>, Tensor<i32, R, B, 2>) {
    let mut integers = Tensor::zeros();
    let mut steps = Tensor::zeros();
    let mut sums = Tensor::zeros();
    for r in 0..R {
        for b in 0..B {
            let mut largest = 0.0;
            for j in 0..32 {
                largest = largest.max(x[[r, b, j]].abs());
            }
            steps[[r, b]] = largest / 127.0;
            for j in 0..32 {
                integers[[r, b, j]] = quantised(x[[r, b, j]], largest);
            }
            for h in 0..2 {
                for j in 0..16 {
                    sums[[r, b, h]] += integers[[r, b, h * 16 + j]] as i32;
                }
            }
        }
    }
    (integers, steps, sums)
}

/// `x · Wᵀ` with blocks of 32 4-bit integers, each less 8, and a scale. The low halves of the bytes are the first 16 integers.
#[tensor_kernel]
pub(crate) fn product_q4_0(
    x: &Tensor<i8, R, { B * 32 }>,
    steps: &Tensor<f32, R, B>,
    sums: &Tensor<i32, R, B, 2>,
    quants: &Tensor<u8, P, B, 4, L, 4>,
    scales: &Tensor<f16, P, B, L>,
) -> Tensor<f32, R, P, L> {
    let mut dots: Tensor<i32, R, P, B, L> = Tensor::zeros();
    for r in 0..R {
        for p in 0..P {
            for b in 0..B {
                for g in 0..4 {
                    for l in 0..L {
                        for j in 0..4 {
                            dots[[r, p, b, l]] += x[[r, b * 32 + g * 4 + j]] as i32
                                * (quants[[p, b, g, l, j]] & 15) as i32
                                + x[[r, b * 32 + 16 + g * 4 + j]] as i32
                                    * (quants[[p, b, g, l, j]] >> 4) as i32;
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
                    y[[r, p, l]] += steps[[r, b]]
                        * scales[[p, b, l]] as f32
                        * (dots[[r, p, b, l]] - 8 * (sums[[r, b, 0]] + sums[[r, b, 1]])) as f32;
                }
            }
        }
    }
    y
}

/// `x · Wᵀ` with blocks of 32 4-bit integers, a scale and a minimum.
#[tensor_kernel]
pub(crate) fn product_q4_1(
    x: &Tensor<i8, R, { B * 32 }>,
    steps: &Tensor<f32, R, B>,
    sums: &Tensor<i32, R, B, 2>,
    quants: &Tensor<u8, P, B, 4, L, 4>,
    scales: &Tensor<f16, P, B, L>,
    minima: &Tensor<f16, P, B, L>,
) -> Tensor<f32, R, P, L> {
    let mut dots: Tensor<i32, R, P, B, L> = Tensor::zeros();
    for r in 0..R {
        for p in 0..P {
            for b in 0..B {
                for g in 0..4 {
                    for l in 0..L {
                        for j in 0..4 {
                            dots[[r, p, b, l]] += x[[r, b * 32 + g * 4 + j]] as i32
                                * (quants[[p, b, g, l, j]] & 15) as i32
                                + x[[r, b * 32 + 16 + g * 4 + j]] as i32
                                    * (quants[[p, b, g, l, j]] >> 4) as i32;
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
                    y[[r, p, l]] += steps[[r, b]]
                        * (scales[[p, b, l]] as f32 * dots[[r, p, b, l]] as f32
                            + minima[[p, b, l]] as f32 * (sums[[r, b, 0]] + sums[[r, b, 1]]) as f32);
                }
            }
        }
    }
    y
}

/// `x · Wᵀ` with blocks of 32 bytes, each less 128, and a scale.
#[tensor_kernel]
pub(crate) fn product_q8_0(
    x: &Tensor<i8, R, { B * 32 }>,
    steps: &Tensor<f32, R, B>,
    sums: &Tensor<i32, R, B, 2>,
    quants: &Tensor<u8, P, B, 8, L, 4>,
    scales: &Tensor<f16, P, B, L>,
) -> Tensor<f32, R, P, L> {
    let mut dots: Tensor<i32, R, P, B, L> = Tensor::zeros();
    for r in 0..R {
        for p in 0..P {
            for b in 0..B {
                for g in 0..8 {
                    for l in 0..L {
                        for j in 0..4 {
                            dots[[r, p, b, l]] +=
                                x[[r, b * 32 + g * 4 + j]] as i32 * quants[[p, b, g, l, j]] as i32;
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
                    y[[r, p, l]] += steps[[r, b]]
                        * scales[[p, b, l]] as f32
                        * (dots[[r, p, b, l]] - 128 * (sums[[r, b, 0]] + sums[[r, b, 1]])) as f32;
                }
            }
        }
    }
    y
}

/// `x · Wᵀ` with blocks of 256 4-bit integers; each 32 have a scale and a minimum of 6 bits, in units of the block's. The low halves of the
/// bytes of 32 integers are the first 16.
#[tensor_kernel]
pub(crate) fn product_q4_k(
    x: &Tensor<i8, R, { B * 256 }>,
    steps: &Tensor<f32, R, { B * 8 }>,
    sums: &Tensor<i32, R, { B * 8 }, 2>,
    quants: &Tensor<u8, P, B, 8, 4, L, 4>,
    factors: &Tensor<u8, P, B, 8, L>,
    least: &Tensor<u8, P, B, 8, L>,
    scales: &Tensor<f16, P, B, L>,
    minima: &Tensor<f16, P, B, L>,
) -> Tensor<f32, R, P, L> {
    let mut dots: Tensor<i32, R, P, B, 8, L> = Tensor::zeros();
    for r in 0..R {
        for p in 0..P {
            for b in 0..B {
                for c in 0..8 {
                    for g in 0..4 {
                        for l in 0..L {
                            for j in 0..4 {
                                dots[[r, p, b, c, l]] += x[[r, b * 256 + c * 32 + g * 4 + j]] as i32
                                    * (quants[[p, b, c, g, l, j]] & 15) as i32
                                    + x[[r, b * 256 + c * 32 + 16 + g * 4 + j]] as i32
                                        * (quants[[p, b, c, g, l, j]] >> 4) as i32;
                            }
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
                    for c in 0..8 {
                        y[[r, p, l]] += steps[[r, b * 8 + c]]
                            * (scales[[p, b, l]] as f32
                                * (number(factors[[p, b, c, l]]) * dots[[r, p, b, c, l]] as f32)
                                - minima[[p, b, l]] as f32
                                    * (number(least[[p, b, c, l]])
                                        * (sums[[r, b * 8 + c, 0]] + sums[[r, b * 8 + c, 1]]) as f32));
                    }
                }
            }
        }
    }
    y
}

/// `x · Wᵀ` with blocks of 256 integers of 6 bits, each less 32; each 16 have a scale of 8 bits, in units of the block's.
#[tensor_kernel]
pub(crate) fn product_q6_k(
    x: &Tensor<i8, R, { B * 256 }>,
    steps: &Tensor<f32, R, { B * 8 }>,
    sums: &Tensor<i32, R, { B * 8 }, 2>,
    quants: &Tensor<u8, P, B, 16, 4, L, 4>,
    factors: &Tensor<i8, P, B, 16, L>,
    scales: &Tensor<f16, P, B, L>,
) -> Tensor<f32, R, P, L> {
    let mut dots: Tensor<i32, R, P, B, 16, L> = Tensor::zeros();
    for r in 0..R {
        for p in 0..P {
            for b in 0..B {
                for c in 0..16 {
                    for g in 0..4 {
                        for l in 0..L {
                            for j in 0..4 {
                                dots[[r, p, b, c, l]] += x[[r, b * 256 + c * 16 + g * 4 + j]] as i32
                                    * quants[[p, b, c, g, l, j]] as i32;
                            }
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
                        y[[r, p, l]] += steps[[r, b * 8 + c / 2]]
                            * scales[[p, b, l]] as f32
                            * (factors[[p, b, c, l]] as i32
                                * (dots[[r, p, b, c, l]] - 32 * sums[[r, b * 8 + c / 2, c % 2]]))
                                as f32;
                    }
                }
            }
        }
    }
    y
}

//! Products of many quantised rows: the integers of a matrix become bytes once, for all rows, and every block type one product.

use tilewright::prelude::*;

use crate::block::kernels::number;

/// Both halves of each byte: the low ones of a block first.
#[tensor_kernel]
pub(crate) fn halves(quants: &Tensor<u8, P, B, 4, L, 4>) -> Tensor<u8, P, B, 2, 4, L, 4> {
    let mut bytes = Tensor::zeros();
    for p in 0..P {
        for b in 0..B {
            for h in 0..2 {
                for g in 0..4 {
                    for l in 0..L {
                        for j in 0..4 {
                            bytes[[p, b, h, g, l, j]] = if h == 0 {
                                quants[[p, b, g, l, j]] & 15
                            } else {
                                quants[[p, b, g, l, j]] >> 4
                            };
                        }
                    }
                }
            }
        }
    }
    bytes
}

/// The scales of blocks whose integers have an offset, and the minima that the offset makes.
#[tensor_kernel]
pub(crate) fn offset_scales(
    scales: &Tensor<f16, P, B, L>,
    offset: f32,
) -> (Tensor<f32, P, B, L>, Tensor<f32, P, B, L>) {
    let mut factors = Tensor::zeros();
    let mut minima = Tensor::zeros();
    for p in 0..P {
        for b in 0..B {
            for l in 0..L {
                factors[[p, b, l]] = scales[[p, b, l]] as f32;
                minima[[p, b, l]] = -offset * scales[[p, b, l]] as f32;
            }
        }
    }
    (factors, minima)
}

/// Scales and minima of half floats as single floats.
#[tensor_kernel]
pub(crate) fn plain_scales(
    scales: &Tensor<f16, P, B, L>,
    minima: &Tensor<f16, P, B, L>,
) -> (Tensor<f32, P, B, L>, Tensor<f32, P, B, L>) {
    let mut factors = Tensor::zeros();
    let mut least = Tensor::zeros();
    for p in 0..P {
        for b in 0..B {
            for l in 0..L {
                factors[[p, b, l]] = scales[[p, b, l]] as f32;
                least[[p, b, l]] = minima[[p, b, l]] as f32;
            }
        }
    }
    (factors, least)
}

/// Scales and minima of the parts of a block: multiples of its own.
#[tensor_kernel]
pub(crate) fn part_scales(
    factors: &Tensor<u8, P, B, 8, L>,
    least: &Tensor<u8, P, B, 8, L>,
    scales: &Tensor<f16, P, B, L>,
    minima: &Tensor<f16, P, B, L>,
) -> (Tensor<f32, P, B, 8, L>, Tensor<f32, P, B, 8, L>) {
    let mut own = Tensor::zeros();
    let mut lowest = Tensor::zeros();
    for p in 0..P {
        for b in 0..B {
            for c in 0..8 {
                for l in 0..L {
                    own[[p, b, c, l]] = scales[[p, b, l]] as f32 * number(factors[[p, b, c, l]]);
                    lowest[[p, b, c, l]] = -(minima[[p, b, l]] as f32) * number(least[[p, b, c, l]]);
                }
            }
        }
    }
    (own, lowest)
}

/// The same for parts whose integers have an offset.
#[tensor_kernel]
pub(crate) fn offset_part_scales(
    factors: &Tensor<i8, P, B, 16, L>,
    scales: &Tensor<f16, P, B, L>,
    offset: f32,
) -> (Tensor<f32, P, B, 16, L>, Tensor<f32, P, B, 16, L>) {
    let mut own = Tensor::zeros();
    let mut lowest = Tensor::zeros();
    for p in 0..P {
        for b in 0..B {
            for c in 0..16 {
                for l in 0..L {
                    own[[p, b, c, l]] = scales[[p, b, l]] as f32 * factors[[p, b, c, l]] as f32;
                    lowest[[p, b, c, l]] =
                        -offset * (scales[[p, b, l]] as f32 * factors[[p, b, c, l]] as f32);
                }
            }
        }
    }
    (own, lowest)
}

/// `x · Wᵀ` with blocks of 32 bytes, a scale and a minimum.
#[tensor_kernel]
pub(crate) fn product_bytes(
    x: &Tensor<i8, R, { B * 32 }>,
    steps: &Tensor<f32, R, B>,
    sums: &Tensor<i32, R, B, 2>,
    bytes: &Tensor<u8, P, B, 8, L, 4>,
    scales: &Tensor<f32, P, B, L>,
    minima: &Tensor<f32, P, B, L>,
) -> Tensor<f32, R, P, L> {
    let mut dots: Tensor<i32, R, P, B, L> = Tensor::zeros();
    for r in 0..R {
        for p in 0..P {
            for b in 0..B {
                for g in 0..8 {
                    for l in 0..L {
                        for j in 0..4 {
                            dots[[r, p, b, l]] +=
                                x[[r, b * 32 + g * 4 + j]] as i32 * bytes[[p, b, g, l, j]] as i32;
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
                        * (scales[[p, b, l]] * dots[[r, p, b, l]] as f32
                            + minima[[p, b, l]] * (sums[[r, b, 0]] + sums[[r, b, 1]]) as f32);
                }
            }
        }
    }
    y
}

/// `x · Wᵀ` with blocks of 32 bytes, whose halves have a scale and a minimum each.
#[tensor_kernel]
pub(crate) fn product_half_blocks(
    x: &Tensor<i8, R, { B * 32 }>,
    steps: &Tensor<f32, R, B>,
    sums: &Tensor<i32, R, B, 2>,
    bytes: &Tensor<u8, P, B, 2, 4, L, 4>,
    scales: &Tensor<f32, P, B, 2, L>,
    minima: &Tensor<f32, P, B, 2, L>,
) -> Tensor<f32, R, P, L> {
    let mut dots: Tensor<i32, R, P, B, 2, L> = Tensor::zeros();
    for r in 0..R {
        for p in 0..P {
            for b in 0..B {
                for h in 0..2 {
                    for g in 0..4 {
                        for l in 0..L {
                            for j in 0..4 {
                                dots[[r, p, b, h, l]] += x[[r, b * 32 + h * 16 + g * 4 + j]] as i32
                                    * bytes[[p, b, h, g, l, j]] as i32;
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
                    for h in 0..2 {
                        y[[r, p, l]] += steps[[r, b]]
                            * (scales[[p, b, h, l]] * dots[[r, p, b, h, l]] as f32
                                + minima[[p, b, h, l]] * sums[[r, b, h]] as f32);
                    }
                }
            }
        }
    }
    y
}

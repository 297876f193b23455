//! The kernels of a decoder whose results are multiplied as integers: each quantises its rows in blocks of 32, as `quantise_rows` does, before they reach
//! memory.

use tilewright::prelude::*;

use crate::block::quantised;
use crate::decoder::kernels::gated;

/// [`normalise`](crate::decoder::kernels::normalise), quantised: integers, steps, and the sum of each half of a block.
#[tensor_kernel]
pub(crate) fn normalise(
    x: &mut Tensor<f32, R, { B * 32 }>,
    found: &Tensor<f32, R, { B * 32 }>,
    weights: &Tensor<f32, B, 32>,
    epsilon: f32,
) -> (Tensor<i8, R, { B * 32 }>, Tensor<f32, R, B>, Tensor<i32, R, B, 2>) {
    let mut normal: Tensor<f32, R, B, 32> = Tensor::zeros();
    let mut integers = Tensor::zeros();
    let mut steps = Tensor::zeros();
    let mut sums = Tensor::zeros();
    for r in 0..R {
        for n in 0..B * 32 {
            x[[r, n]] = x[[r, n]] + found[[r, n]];
        }
        let mut squares = 0.0;
        for n in 0..B * 32 {
            squares += x[[r, n]] * x[[r, n]];
        }
        let factor = 1.0 / (squares / (B * 32) as f32 + epsilon).sqrt();
        for b in 0..B {
            for j in 0..32 {
                normal[[r, b, j]] = x[[r, b * 32 + j]] * factor * weights[[b, j]];
            }
        }
        for b in 0..B {
            let mut largest = 0.0;
            for j in 0..32 {
                largest = largest.max(normal[[r, b, j]].abs());
            }
            steps[[r, b]] = largest / 127.0;
            for j in 0..32 {
                integers[[r, b * 32 + j]] = quantised(normal[[r, b, j]], largest);
            }
            for h in 0..2 {
                for j in 0..16 {
                    sums[[r, b, h]] += integers[[r, b * 32 + h * 16 + j]] as i32;
                }
            }
        }
    }
    (integers, steps, sums)
}

/// [`gate`](crate::decoder::kernels::gate), quantised.
#[tensor_kernel]
pub(crate) fn gate(
    both: &Tensor<f32, R, 2, B, 32>,
) -> (Tensor<i8, R, { B * 32 }>, Tensor<f32, R, B>, Tensor<i32, R, B, 2>) {
    let mut passed: Tensor<f32, R, B, 32> = Tensor::zeros();
    let mut integers = Tensor::zeros();
    let mut steps = Tensor::zeros();
    let mut sums = Tensor::zeros();
    for r in 0..R {
        for b in 0..B {
            for j in 0..32 {
                passed[[r, b, j]] = gated(both[[r, 0, b, j]], both[[r, 1, b, j]]);
            }
        }
        for b in 0..B {
            let mut largest = 0.0;
            for j in 0..32 {
                largest = largest.max(passed[[r, b, j]].abs());
            }
            steps[[r, b]] = largest / 127.0;
            for j in 0..32 {
                integers[[r, b * 32 + j]] = quantised(passed[[r, b, j]], largest);
            }
            for h in 0..2 {
                for j in 0..16 {
                    sums[[r, b, h]] += integers[[r, b * 32 + h * 16 + j]] as i32;
                }
            }
        }
    }
    (integers, steps, sums)
}

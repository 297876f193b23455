//! Kernels for the corners of the language: inference, scopes, constants, operators.

use tilewright::{Tensor, tensor_kernel};

const LENGTH: usize = 3;
const OFFSET: i32 = -7;
const SCALE: f32 = 0.1;

/// Constants of the module in bounds, in indices and in values, and arithmetic among them alone.
#[tensor_kernel]
pub(crate) fn constants(x: &Tensor<f32, N>) -> (Tensor<f32, N>, Tensor<i32, N>) {
    let mut y = Tensor::zeros();
    let mut z = Tensor::zeros();
    for i in 0..N {
        for k in 0..LENGTH - 1 {
            y[[i]] += x[[(i + k * LENGTH) % N]] * (SCALE + 0.2) / LENGTH as f32;
        }
        z[[i]] = OFFSET * 2 + 1 + LENGTH as i32 - i as i32 + OFFSET % 4;
    }
    (y, z)
}

/// Names that are used again for other values, and blocks that end their scope.
#[tensor_kernel]
pub(crate) fn scopes(x: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut y = Tensor::zeros();
    for i in 0..N {
        let v = x[[i]];
        let v = v * v;
        {
            let v = v + 1.0;
            y[[i]] += v;
        }
        let w = {
            let v = v.exp();
            v + { 2.0 }
        };
        y[[i]] += v * w;
    }
    for i in 0..N {
        y[[i]] *= 2.0;
    }
    y
}

/// Accumulators of every kind of update, in branches too.
#[tensor_kernel]
pub(crate) fn accumulators(x: &Tensor<f32, M, N>, ids: &Tensor<i32, M, N>) -> Tensor<f32, M, 6> {
    let mut y = Tensor::zeros();
    for i in 0..M {
        let mut sum = 0.0;
        let mut product = 1.0;
        let mut least = f32::INFINITY;
        let mut count = 0;
        let mut difference = 100.0;
        let mut any = false;
        for j in 0..N {
            sum += x[[i, j]];
            product *= x[[i, j]] + 0.5;
            least = x[[i, j]].min(least);
            difference -= x[[i, j]];
            if ids[[i, j]] > 3 {
                count += ids[[i, j]];
            }
            any |= ids[[i, j]] == 5;
        }
        sum /= N as f32;
        y[[i, 0]] = sum;
        y[[i, 1]] = product;
        y[[i, 2]] = least;
        y[[i, 3]] = count as f32;
        y[[i, 4]] = difference;
        y[[i, 5]] = if any { 1.0 } else { 0.0 };
    }
    y
}

/// Literals take their types from what they meet, also through other values.
#[tensor_kernel]
pub(crate) fn inference(
    x: &Tensor<f64, N>,
    y: &Tensor<f32, N>,
    z: &Tensor<i8, N>,
) -> (Tensor<f64, N>, Tensor<f32, N>, Tensor<i64, N>) {
    let mut a = Tensor::full(0.1);
    let mut b = Tensor::full(0.1);
    let mut c = Tensor::full(-1);
    for i in 0..N {
        let third = 1.0 / 3.0;
        let tenth = 0.1;
        a[[i]] += x[[i]] * third + 16777217.0;
        b[[i]] += y[[i]] * tenth + 16777217.0;
        let free = 7 / 2;
        c[[i]] += (z[[i]] * 100 + 50) as i64 + free as i64 + (0.1 + 0.2) as i64 + 9_000_000_000;
    }
    (a, b, c)
}

/// Whole numbers at the edges of their types.
#[tensor_kernel]
pub(crate) fn edges(
    x: &Tensor<i32, N>,
    y: &Tensor<u8, N>,
    z: &Tensor<i64, N>,
) -> (Tensor<i32, N, 6>, Tensor<u8, N, 3>, Tensor<i64, N, 3>) {
    let mut a = Tensor::zeros();
    let mut b = Tensor::zeros();
    let mut c = Tensor::zeros();
    for i in 0..N {
        a[[i, 0]] = x[[i]] * i32::MAX + i32::MIN;
        a[[i, 1]] = i32::MIN / (x[[i]] / x[[i]] - 2);
        a[[i, 2]] = x[[i]] % 0;
        a[[i, 3]] = -i32::MIN + i32::MIN.abs();
        a[[i, 4]] = x[[i]] << 33;
        a[[i, 5]] = (x[[i]] as f32 * 1e9) as i32;
        b[[i, 0]] = y[[i]] - 255;
        b[[i, 1]] = !y[[i]] & 0x0f | y[[i]] << 9;
        b[[i, 2]] = (y[[i]] as i8) as u8 + (x[[i]] as u8);
        c[[i, 0]] = z[[i]] * i64::MAX;
        c[[i, 1]] = z[[i]] >> 65;
        c[[i, 2]] = (y[[i]] as i8) as i64 + (z[[i]] as f64) as i64;
    }
    (a, b, c)
}

/// `usize` and `isize` arithmetic in values and indices.
#[tensor_kernel]
pub(crate) fn positions(x: &Tensor<f32, M, N>) -> (Tensor<f32, M, N>, Tensor<i64, M, N>) {
    let mut y = Tensor::zeros();
    let mut z = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            let near = (i as isize - j as isize).abs();
            let far = (i + j).max(3).min(M - 1);
            y[[i, j]] = x[[far, (j * 2 + i) % N]] * near as f32;
            z[[i, j]] = (i / 2 * 3 + j % 2) as i64 - near as i64 * far as i64;
        }
    }
    (y, z)
}

/// A transposed convolution in gather form: divisibility is a condition.
#[tensor_kernel]
pub(crate) fn transposed_conv(
    x: &Tensor<f32, H, CI>,
    w: &Tensor<f32, K, CI, CO>,
    stride: usize,
) -> Tensor<f32, { (H - 1) * stride + K }, CO> {
    let mut y = Tensor::zeros();
    for o in 0..(H - 1) * stride + K {
        for co in 0..CO {
            for k in 0..K {
                for ci in 0..CI {
                    let reached = o >= k && (o - k) % stride == 0 && (o - k) / stride < H;
                    y[[o, co]] += if reached { x[[(o - k) / stride, ci]] * w[[k, ci, co]] } else { 0.0 };
                }
            }
        }
    }
    y
}

/// An intermediate that lives inside a loop.
#[tensor_kernel]
pub(crate) fn inner_tensor(x: &Tensor<f32, M, N>) -> Tensor<f32, M, N> {
    let mut y = Tensor::zeros();
    for i in 0..M {
        let mut row: Tensor<f32, N> = Tensor::zeros();
        for j in 0..N {
            row[[j]] = x[[i, j]].exp();
        }
        for j in 0..N {
            y[[i, j]] = row[[N - 1 - j]];
        }
    }
    y
}

/// A gather whose index is itself gathered, in every integer type.
#[tensor_kernel]
pub(crate) fn chained_gather(
    x: &Tensor<f32, V>,
    first: &Tensor<u8, N>,
    second: &Tensor<i64, U>,
) -> Tensor<f32, N> {
    let mut y = Tensor::zeros();
    for i in 0..N {
        y[[i]] = x[[second[[first[[i]] as usize]] as usize]];
    }
    y
}

/// Rounding functions of integers' neighbours, halves and large numbers.
#[tensor_kernel]
pub(crate) fn mixed_precision(
    x: &Tensor<bf16, N>,
    scale: bf16,
    shift: f16,
    gain: f64,
) -> (Tensor<f16, N>, Tensor<f64, N>) {
    let mut y = Tensor::full(shift);
    let mut z = Tensor::zeros();
    for i in 0..N {
        let scaled: bf16 = x[[i]].mul_add(scale, scale);
        y[[i]] += scaled as f16;
        z[[i]] =
            scaled.sigmoid() as f64 * gain + (scaled as f32).floor() as f64 + (scaled > scale) as u8 as f64;
    }
    (y, z)
}

/// Initial values that are computed, and names that are words of Rust.
#[tensor_kernel]
pub(crate) fn r#move(r#type: &Tensor<f32, N>, r#in: f32) -> (Tensor<f32, N>, Tensor<f32, N>) {
    let mut r#ref = Tensor::full(r#in * 2.0 - 1.0);
    let mut first = Tensor::full(r#type[[0]]);
    for r#loop in 0..N {
        r#ref[[r#loop]] += r#type[[r#loop]];
        first[[r#loop]] *= 0.5;
    }
    (r#ref, first)
}

//! Kernels that use every feature of the language, most of them things that people compute.

use tilewright::{Tensor, tensor_kernel};

pub(crate) const EPSILON: f32 = 1e-5;
const HALF: usize = 2;

/// C = A·B
#[tensor_kernel]
pub(crate) fn matmul(a: &Tensor<f32, M, K>, b: &Tensor<f32, K, N>) -> Tensor<f32, M, N> {
    let mut c = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            for k in 0..K {
                c[[i, j]] += a[[i, k]] * b[[k, j]];
            }
        }
    }
    c
}

/// As matmul, with a scalar that accumulates.
#[tensor_kernel]
pub(crate) fn matmul_by_scalar(a: &Tensor<f64, M, K>, b: &Tensor<f64, N, K>) -> Tensor<f64, M, N> {
    let mut c = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            let mut sum = 0.0;
            for k in 0..K {
                sum += a[[i, k]] * b[[j, k]];
            }
            c[[i, j]] = sum;
        }
    }
    c
}

#[tensor_kernel]
pub(crate) fn quantised_matmul(a: &Tensor<u8, M, K>, b: &Tensor<i8, K, N>, zero: i32) -> Tensor<i32, M, N> {
    let mut c = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            for k in 0..K {
                c[[i, j]] += (a[[i, k]] as i32 - zero) * b[[k, j]] as i32;
            }
        }
    }
    c
}

#[tensor_kernel]
pub(crate) fn quantise(x: &Tensor<f32, N>, scale: f32) -> (Tensor<u8, N>, Tensor<i8, N>) {
    let mut unsigned = Tensor::zeros();
    let mut signed = Tensor::zeros();
    for i in 0..N {
        let scaled = (x[[i]] / scale).round_ties_even();
        unsigned[[i]] = scaled.max(0.0).min(255.0) as u8;
        signed[[i]] = scaled as i8;
    }
    (unsigned, signed)
}

/// A convolution with padding, stride, dilation and a bias.
#[tensor_kernel]
pub(crate) fn conv2d(
    x: &Tensor<f32, H, W, CI>,
    w: &Tensor<f32, KH, KW, CI, CO>,
    bias: &Tensor<f32, CO>,
    stride: usize,
    padding: usize,
    dilation: usize,
) -> Tensor<
    f32,
    { (H + 2 * padding - dilation * (KH - 1) - 1) / stride + 1 },
    { (W + 2 * padding - dilation * (KW - 1) - 1) / stride + 1 },
    CO,
> {
    let mut y = Tensor::zeros();
    for oh in 0..(H + 2 * padding - dilation * (KH - 1) - 1) / stride + 1 {
        for ow in 0..(W + 2 * padding - dilation * (KW - 1) - 1) / stride + 1 {
            for co in 0..CO {
                let mut sum = bias[[co]];
                for kh in 0..KH {
                    for kw in 0..KW {
                        for ci in 0..CI {
                            let h = oh * stride + kh * dilation;
                            let v = ow * stride + kw * dilation;
                            let inside = h >= padding && h < H + padding && v >= padding && v < W + padding;
                            let value = if inside { x[[h - padding, v - padding, ci]] } else { 0.0 };
                            sum += value * w[[kh, kw, ci, co]];
                        }
                    }
                }
                y[[oh, ow, co]] = sum.max(0.0);
            }
        }
    }
    y
}

/// A depthwise convolution without padding, with an intermediate tensor for the activation.
#[tensor_kernel]
pub(crate) fn depthwise(
    x: &Tensor<f32, H, W, C>,
    w: &Tensor<f32, 3, 3, C>,
) -> Tensor<f32, { H - 2 }, { W - 2 }, C> {
    let mut y = Tensor::zeros();
    let mut t: Tensor<f32, { H - 2 }, { W - 2 }, C> = Tensor::zeros();
    for i in 0..H - 2 {
        for j in 0..W - 2 {
            for c in 0..C {
                for a in 0..3 {
                    for b in 0..3 {
                        t[[i, j, c]] += x[[i + a, j + b, c]] * w[[a, b, c]];
                    }
                }
            }
        }
    }
    for i in 0..H - 2 {
        for j in 0..W - 2 {
            for c in 0..C {
                y[[i, j, c]] = t[[i, j, c]] * t[[i, j, c]].sigmoid();
            }
        }
    }
    y
}

#[tensor_kernel]
pub(crate) fn softmax(x: &Tensor<f32, M, N>) -> Tensor<f32, M, N> {
    let mut y = Tensor::zeros();
    for i in 0..M {
        let mut largest = f32::NEG_INFINITY;
        for j in 0..N {
            largest = largest.max(x[[i, j]]);
        }
        let mut sum = 0.0;
        for j in 0..N {
            sum += (x[[i, j]] - largest).exp();
        }
        for j in 0..N {
            y[[i, j]] = (x[[i, j]] - largest).exp() / sum;
        }
    }
    y
}

#[tensor_kernel]
pub(crate) fn layer_norm(
    x: &Tensor<f32, M, N>,
    gain: &Tensor<f32, N>,
    bias: &Tensor<f32, N>,
) -> (Tensor<f32, M, N>, Tensor<f32, M>, Tensor<f32, M>) {
    let mut y = Tensor::zeros();
    let mut mean = Tensor::zeros();
    let mut variance = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            mean[[i]] += x[[i, j]] / N as f32;
        }
        for j in 0..N {
            let centred = x[[i, j]] - mean[[i]];
            variance[[i]] += centred * centred / N as f32;
        }
        for j in 0..N {
            let scale = (variance[[i]] + EPSILON).rsqrt();
            y[[i, j]] = (x[[i, j]] - mean[[i]]) * scale * gain[[j]] + bias[[j]];
        }
    }
    (y, mean, variance)
}

/// One head of attention, causal: intermediates, a triangular loop, a scalar argument.
#[tensor_kernel]
pub(crate) fn attention(
    q: &Tensor<f32, S, D>,
    k: &Tensor<f32, S, D>,
    v: &Tensor<f32, S, D>,
    scale: f32,
) -> Tensor<f32, S, D> {
    let mut scores: Tensor<f32, S, S> = Tensor::full(f32::NEG_INFINITY);
    let mut out = Tensor::zeros();
    for i in 0..S {
        for j in 0..=i {
            let mut dot = 0.0;
            for d in 0..D {
                dot += q[[i, d]] * k[[j, d]];
            }
            scores[[i, j]] = dot * scale;
        }
    }
    for i in 0..S {
        let mut largest = f32::NEG_INFINITY;
        for j in 0..S {
            largest = largest.max(scores[[i, j]]);
        }
        let mut sum = 0.0;
        for j in 0..S {
            sum += (scores[[i, j]] - largest).exp();
        }
        for d in 0..D {
            for j in 0..S {
                out[[i, d]] += (scores[[i, j]] - largest).exp() / sum * v[[j, d]];
            }
        }
    }
    out
}

#[tensor_kernel]
pub(crate) fn relu_in_place(x: &mut Tensor<f32, M, N>) {
    for i in 0..M {
        for j in 0..N {
            x[[i, j]] = x[[i, j]].max(0.0);
        }
    }
}

#[tensor_kernel]
pub(crate) fn axpy(x: &Tensor<f32, N>, y: &mut Tensor<f32, N>, alpha: f32) {
    for i in 0..N {
        y[[i]] += alpha * x[[i]];
    }
}

/// Updates one argument and returns a tensor.
#[tensor_kernel]
pub(crate) fn momentum(
    gradient: &Tensor<f32, N>,
    velocity: &mut Tensor<f32, N>,
    weights: &Tensor<f32, N>,
    rate: f32,
) -> Tensor<f32, N> {
    let mut next = Tensor::zeros();
    for i in 0..N {
        let v = 0.9 * velocity[[i]] + gradient[[i]];
        velocity[[i]] = v;
        next[[i]] = weights[[i]] - rate * v;
    }
    next
}

#[tensor_kernel]
pub(crate) fn embedding(table: &Tensor<f32, V, D>, ids: &Tensor<i32, S>) -> Tensor<f32, S, D> {
    let mut rows = Tensor::zeros();
    for i in 0..S {
        let row = ids[[i]] as usize;
        for d in 0..D {
            rows[[i, d]] = table[[row, d]] + table[[ids[[i]] as usize, d]];
        }
    }
    rows
}

/// Bytes as places in tables.
#[tensor_kernel]
pub(crate) fn tables(
    x: &Tensor<u8, N>,
    y: &Tensor<i8, N>,
    bytes: &Tensor<u8, 256>,
    signed: &Tensor<i8, 260>,
    words: &Tensor<i32, 257>,
    numbers: &Tensor<f32, 300>,
) -> (Tensor<u8, N>, Tensor<i8, N>, Tensor<i32, N>, Tensor<f32, N>) {
    let mut a = Tensor::zeros();
    let mut b = Tensor::zeros();
    let mut c = Tensor::zeros();
    let mut d = Tensor::zeros();
    for i in 0..N {
        a[[i]] = bytes[[x[[i]] as usize]];
        b[[i]] = signed[[y[[i]] as u8 as usize]];
        c[[i]] = words[[x[[i]] as usize]] + words[[y[[i]] as u8 as usize]];
        d[[i]] = numbers[[bytes[[x[[i]] as usize]] as usize]] * 0.5;
    }
    (a, b, c, d)
}

#[tensor_kernel]
pub(crate) fn max_pool(x: &Tensor<f32, H, W>) -> Tensor<f32, { H / 2 }, { W / 2 }> {
    let mut y = Tensor::full(f32::NEG_INFINITY);
    for i in 0..H / 2 {
        for j in 0..W / 2 {
            for a in 0..2 {
                for b in 0..2 {
                    y[[i, j]] = y[[i, j]].max(x[[2 * i + a, 2 * j + b]]);
                }
            }
        }
    }
    y
}

/// Least, greatest and product of each row, in two element types.
#[tensor_kernel]
pub(crate) fn extremes(x: &Tensor<i32, M, N>) -> (Tensor<i32, M>, Tensor<i32, M>, Tensor<i64, M>) {
    let mut least = Tensor::full(i32::MAX);
    let mut greatest = Tensor::full(i32::MIN);
    let mut product = Tensor::full(1);
    for i in 0..M {
        for j in 0..N {
            least[[i]] = least[[i]].min(x[[i, j]]);
            greatest[[i]] = x[[i, j]].max(greatest[[i]]);
            product[[i]] *= x[[i, j]] as i64;
        }
    }
    (least, greatest, product)
}

/// Least and greatest of each row, NaN where one element is, and the greater of neighbours.
#[tensor_kernel]
pub(crate) fn propagating_extremes(
    x: &Tensor<f32, M, N>,
) -> (Tensor<f32, M>, Tensor<f32, M>, Tensor<f64, M, N>) {
    let mut least = Tensor::full(f32::INFINITY);
    let mut greatest = Tensor::zeros();
    let mut neighbours = Tensor::zeros();
    for i in 0..M {
        let mut largest = f32::NEG_INFINITY;
        for j in 0..N {
            let root = (x[[i, j]] + 0.9).sqrt();
            least[[i]] = least[[i]].minimum(root);
            largest = root.maximum(largest);
            neighbours[[i, j]] = (root as f64).maximum(x[[i, N - 1 - j]] as f64);
        }
        greatest[[i]] = largest;
    }
    (least, greatest, neighbours)
}

#[tensor_kernel]
pub(crate) fn functions(x: &Tensor<f32, N>) -> Tensor<f32, N, 20> {
    let mut y = Tensor::zeros();
    for i in 0..N {
        let v = x[[i]];
        y[[i, 0]] = v.exp();
        y[[i, 1]] = v.abs().ln();
        y[[i, 2]] = v.abs().sqrt();
        y[[i, 3]] = (v.abs() + 1e-3).rsqrt();
        y[[i, 4]] = v.tanh();
        y[[i, 5]] = v.erf();
        y[[i, 6]] = v.sigmoid();
        y[[i, 7]] = v.sin();
        y[[i, 8]] = v.cos();
        y[[i, 9]] = (v * 10.0).floor();
        y[[i, 10]] = (v * 10.0).ceil();
        y[[i, 11]] = (v * 10.0).round();
        y[[i, 12]] = (v * 10.0).trunc();
        y[[i, 13]] = v.mul_add(2.0, -0.5);
        y[[i, 14]] = v.powi(5);
        y[[i, 15]] = (v + 3.0).powi(-2);
        y[[i, 16]] = v.max(0.1).min(0.7);
        y[[i, 17]] = -v % 0.3;
        y[[i, 18]] = 0.1 + 0.2 + v / 3.0;
        y[[i, 19]] = (v * 10.0).round_ties_even();
    }
    y
}

#[tensor_kernel]
pub(crate) fn functions_in_double(x: &Tensor<f64, N>) -> Tensor<f64, N, 9> {
    let mut y = Tensor::zeros();
    for i in 0..N {
        let v = x[[i]];
        y[[i, 0]] = v.exp();
        y[[i, 1]] = v.abs().ln();
        y[[i, 2]] = v.tanh();
        y[[i, 3]] = v.erf();
        y[[i, 4]] = v.sigmoid();
        y[[i, 5]] = v.sin();
        y[[i, 6]] = v.cos();
        y[[i, 7]] = v.powi(3) + f64::EPSILON;
        y[[i, 8]] = 1e300 * v;
    }
    y
}

#[tensor_kernel]
pub(crate) fn half_precision(
    a: &Tensor<f16, N>,
    b: &Tensor<bf16, N>,
) -> (Tensor<f16, N>, Tensor<bf16, N>, Tensor<f32, 1>) {
    let mut p = Tensor::zeros();
    let mut q = Tensor::full(1.5 as bf16);
    let mut sum = Tensor::zeros();
    for i in 0..N {
        p[[i]] = a[[i]] * a[[i]] + b[[i]] as f16 - 0.25 as f16;
        q[[i]] += b[[i]].exp() / (a[[i]] as bf16).max(bf16::MIN_POSITIVE);
        sum[[0]] += a[[i]] as f32 * b[[i]] as f32;
    }
    (p, q, sum)
}

#[tensor_kernel]
pub(crate) fn integers(
    a: &Tensor<i32, N>,
    b: &Tensor<i8, N>,
    c: &Tensor<u8, N>,
) -> (Tensor<i32, N>, Tensor<i8, N>, Tensor<u8, N>) {
    let mut x = Tensor::zeros();
    let mut y = Tensor::zeros();
    let mut z = Tensor::zeros();
    for i in 0..N {
        x[[i]] = (a[[i]] * 1_000_003 ^ 0x55) / (a[[i]] % 7) + (a[[i]] << 3 | a[[i]] >> 1 & 0xff);
        y[[i]] = -(b[[i]] + 100 - !b[[i]]).abs() * 3;
        z[[i]] = c[[i]] + 200 - (c[[i]] / 3 >> 1);
        z[[i]] -= 1;
        x[[i]] ^= i as i32;
    }
    (x, y, z)
}

#[tensor_kernel]
pub(crate) fn masks(a: &Tensor<f32, N>, b: &Tensor<bool, N>) -> (Tensor<bool, N>, Tensor<i64, 1>) {
    let mut m = Tensor::zeros();
    let mut count = Tensor::zeros();
    for i in 0..N {
        m[[i]] =
            a[[i]] > 0.5 && !b[[i]] || a[[i]] == 0.0 || (i >= 1 && a[[i - 1]] <= 0.1 && b[[i]] != b[[i - 1]]);
        count[[0]] += if m[[i]] { 1 } else { 0 };
    }
    (m, count)
}

/// `if` as a statement, with all its parts.
#[tensor_kernel]
pub(crate) fn branches(x: &Tensor<f32, M, N>, limit: f32) -> Tensor<f32, M, N> {
    let mut y = Tensor::full(-1.0);
    for i in 0..M {
        for j in 0..N {
            if i == j {
                y[[i, j]] = 1.0;
            } else if x[[i, j]] > limit {
                y[[i, j]] = x[[i, j]];
            } else if i + 1 < M {
                y[[i, j]] = x[[i + 1, j]] * 2.0;
            }
        }
    }
    y
}

/// Blocks and `let`s inside values.
#[tensor_kernel]
pub(crate) fn gelu(x: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut y = Tensor::zeros();
    for i in 0..N {
        let exact = i % HALF == 0;
        y[[i]] = if exact {
            let scaled = x[[i]] * std::f32::consts::FRAC_1_SQRT_2;
            0.5 * x[[i]] * (1.0 + scaled.erf())
        } else {
            let cube = { x[[i]] * x[[i]] * x[[i]] };
            let inner = 0.797_884_6 * (x[[i]] + 0.044_715 * cube);
            0.5 * x[[i]] * (1.0 + inner.tanh())
        };
    }
    y
}

/// A value that a `let` read does not change.
#[tensor_kernel]
pub(crate) fn swap(x: &mut Tensor<f32, N>, y: &mut Tensor<f32, N>) {
    for i in 0..N {
        let old = x[[i]];
        x[[i]] = y[[i]];
        y[[i]] = old;
    }
}

/// Steps that are literals and steps that are arguments.
#[tensor_kernel]
pub(crate) fn strided(x: &Tensor<f32, N>, step: usize) -> (Tensor<f32, N>, Tensor<f32, 1>) {
    let mut y = Tensor::zeros();
    let mut z = Tensor::zeros();
    for i in (1..N).step_by(3) {
        y[[i]] = x[[i]];
    }
    for i in (0..N).step_by(step) {
        z[[0]] += x[[i]];
    }
    (y, z)
}

/// Quotients, remainders and counting down.
#[tensor_kernel]
pub(crate) fn shuffle(x: &Tensor<f32, M, N>) -> (Tensor<f32, { M * N }>, Tensor<f32, N, M>) {
    let mut flat = Tensor::zeros();
    let mut turned = Tensor::zeros();
    for i in 0..M * N {
        flat[[i]] = x[[i / N, i % N]];
    }
    for i in 0..N {
        for j in 0..M {
            turned[[i, j]] = x[[M - 1 - j, N - 1 - i]];
        }
    }
    (flat, turned)
}

/// Types of dimensions in one signature.
#[tensor_kernel]
pub(crate) fn shapes(
    a: &Tensor<f32, M, 4>,
    b: &Tensor<f32, { 2 * M + extra }, 4>,
    extra: usize,
) -> Tensor<f32, extra, { M.max(extra) }> {
    let mut c = Tensor::zeros();
    for i in 0..extra {
        for j in 0..M.max(extra) {
            c[[i, j]] = if j < M { a[[j, 1]] } else { b[[2 * M + i, 3]] } + (i + j) as f32;
        }
    }
    c
}

/// A rolling window, with indices that may be negative before they are tested.
#[tensor_kernel]
pub(crate) fn blur(x: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut y = Tensor::zeros();
    for i in 0..N {
        for k in 0..5 {
            let at = i as isize + k as isize - 2;
            if at >= 0 && at < N as isize {
                y[[i]] += x[[at as usize]] * 0.2;
            }
        }
    }
    y
}

/// Names that generated code uses too.
#[tensor_kernel]
pub(crate) fn kernel(dims: &Tensor<f32, N>, value: f32, scalars: f32) -> Tensor<f32, N> {
    let mut builder = Tensor::zeros();
    for indices in 0..N {
        let shape = dims[[indices]] + scalars;
        builder[[indices]] = shape * value;
    }
    builder
}

/// Repeats without using the number of the repetition.
#[tensor_kernel]
pub(crate) fn repeat(x: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut y = Tensor::zeros();
    for i in 0..N {
        for _ in 0..3 {
            y[[i]] += x[[i]];
        }
    }
    y
}

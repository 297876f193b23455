//! Every layer of a BERT-like encoder as a kernel definition.
//!
//! `B` sentences of `S` tokens; `H` hidden features in `A` heads of `D`.

use tilewright::prelude::*;

/// The sum of a token's embedding, that of its position, and that of the first token type.
#[tensor_kernel]
pub fn embed(
    ids: &Tensor<i32, B, S>,
    words: &Tensor<f32, V, H>,
    positions: &Tensor<f32, P, H>,
    types: &Tensor<f32, T, H>,
) -> Tensor<f32, B, S, H> {
    let mut x = Tensor::zeros();
    for b in 0..B {
        for s in 0..S {
            for h in 0..H {
                x[[b, s, h]] = words[[ids[[b, s]] as usize, h]] + positions[[s, h]] + types[[0, h]];
            }
        }
    }
    x
}

/// `x + y`, normalised over the features, scaled and shifted.
#[tensor_kernel]
pub fn add_layer_norm(
    x: &Tensor<f32, R, H>,
    y: &Tensor<f32, R, H>,
    scale: &Tensor<f32, H>,
    shift: &Tensor<f32, H>,
    epsilon: f32,
) -> Tensor<f32, R, H> {
    let mut z = Tensor::zeros();
    for r in 0..R {
        let mut sum = 0.0;
        for h in 0..H {
            sum += x[[r, h]] + y[[r, h]];
        }
        let mean = sum / H as f32;
        let mut squares = 0.0;
        for h in 0..H {
            let centred = x[[r, h]] + y[[r, h]] - mean;
            squares += centred * centred;
        }
        let inverse = (squares / H as f32 + epsilon).rsqrt();
        for h in 0..H {
            z[[r, h]] = (x[[r, h]] + y[[r, h]] - mean) * inverse * scale[[h]] + shift[[h]];
        }
    }
    z
}

/// `x` normalised over the features, scaled and shifted.
#[tensor_kernel]
pub fn layer_norm(
    x: &Tensor<f32, R, H>,
    scale: &Tensor<f32, H>,
    shift: &Tensor<f32, H>,
    epsilon: f32,
) -> Tensor<f32, R, H> {
    let mut z = Tensor::zeros();
    for r in 0..R {
        let mut sum = 0.0;
        for h in 0..H {
            sum += x[[r, h]];
        }
        let mean = sum / H as f32;
        let mut squares = 0.0;
        for h in 0..H {
            let centred = x[[r, h]] - mean;
            squares += centred * centred;
        }
        let inverse = (squares / H as f32 + epsilon).rsqrt();
        for h in 0..H {
            z[[r, h]] = (x[[r, h]] - mean) * inverse * scale[[h]] + shift[[h]];
        }
    }
    z
}

/// `x·w + b`
#[tensor_kernel]
pub fn linear(
    x: &Tensor<f32, R, K>,
    #[constant] weight: &Tensor<f32, K, N>,
    bias: &Tensor<f32, N>,
) -> Tensor<f32, R, N> {
    let mut y = Tensor::zeros();
    for r in 0..R {
        for n in 0..N {
            let mut sum = 0.0;
            for k in 0..K {
                sum += x[[r, k]] * weight[[k, n]];
            }
            y[[r, n]] = sum + bias[[n]];
        }
    }
    y
}

/// `gelu(x·w + b)` with the exact Gaussian error linear unit.
#[tensor_kernel]
pub fn linear_gelu(
    x: &Tensor<f32, R, K>,
    #[constant] weight: &Tensor<f32, K, N>,
    bias: &Tensor<f32, N>,
) -> Tensor<f32, R, N> {
    let mut y = Tensor::zeros();
    for r in 0..R {
        for n in 0..N {
            let mut sum = 0.0;
            for k in 0..K {
                sum += x[[r, k]] * weight[[k, n]];
            }
            let v = sum + bias[[n]];
            y[[r, n]] = 0.5 * v * (1.0 + (v * 0.707_106_77).erf());
        }
    }
    y
}

/// How much each token attends to each other: softmax of scaled products of queries and keys, over the
/// tokens that are there.
#[tensor_kernel]
pub fn attention_weights(
    query: &Tensor<f32, B, S, A, D>,
    key: &Tensor<f32, B, S, A, D>,
    lengths: &Tensor<i32, B>,
    scale: f32,
) -> Tensor<f32, B, A, S, S> {
    let mut scores: Tensor<f32, B, A, S, S> = Tensor::zeros();
    for b in 0..B {
        for a in 0..A {
            for i in 0..S {
                for j in 0..S {
                    for d in 0..D {
                        scores[[b, a, i, j]] += query[[b, i, a, d]] * key[[b, j, a, d]];
                    }
                }
            }
        }
    }
    let mut weights = Tensor::zeros();
    for b in 0..B {
        for a in 0..A {
            for i in 0..S {
                let mut largest = f32::NEG_INFINITY;
                for j in 0..S {
                    largest = largest.max(if (j as i32) < lengths[[b]] {
                        scores[[b, a, i, j]] * scale
                    } else {
                        f32::NEG_INFINITY
                    });
                }
                let mut sum = 0.0;
                for j in 0..S {
                    let weight = if (j as i32) < lengths[[b]] {
                        (scores[[b, a, i, j]] * scale - largest).exp()
                    } else {
                        0.0
                    };
                    weights[[b, a, i, j]] = weight;
                    sum += weight;
                }
                for j in 0..S {
                    weights[[b, a, i, j]] = weights[[b, a, i, j]] / sum;
                }
            }
        }
    }
    weights
}

/// The values, averaged by attention.
#[tensor_kernel]
pub fn attend(weights: &Tensor<f32, B, A, S, S>, value: &Tensor<f32, B, S, A, D>) -> Tensor<f32, B, S, A, D> {
    let mut context = Tensor::zeros();
    for b in 0..B {
        for i in 0..S {
            for a in 0..A {
                for d in 0..D {
                    for j in 0..S {
                        context[[b, i, a, d]] += weights[[b, a, i, j]] * value[[b, j, a, d]];
                    }
                }
            }
        }
    }
    context
}

/// The mean over a sentence's tokens, scaled to length 1.
#[tensor_kernel]
pub fn mean_pool(x: &Tensor<f32, B, S, H>, lengths: &Tensor<i32, B>) -> Tensor<f32, B, H> {
    let mut sums: Tensor<f32, B, H> = Tensor::zeros();
    for b in 0..B {
        for h in 0..H {
            for s in 0..S {
                sums[[b, h]] += if (s as i32) < lengths[[b]] { x[[b, s, h]] } else { 0.0 };
            }
        }
    }
    let mut y = Tensor::zeros();
    for b in 0..B {
        let mut squares = 0.0;
        for h in 0..H {
            squares += sums[[b, h]] * sums[[b, h]];
        }
        for h in 0..H {
            y[[b, h]] = sums[[b, h]] * squares.rsqrt();
        }
    }
    y
}

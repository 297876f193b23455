//! The kernels of a decoder besides products with its matrices.
//!
//! `R` tokens are computed at once. A cache has room for `C` tokens, of which a token sees those up to its own position.

use tilewright::prelude::*;

/// Adds `found` to `x`, and gives the rows of the sum divided by the root of their mean square, times weights.
#[tensor_kernel]
pub(crate) fn normalise(
    x: &mut Tensor<f32, R, N>,
    found: &Tensor<f32, R, N>,
    weights: &Tensor<f32, N>,
    epsilon: f32,
) -> Tensor<f32, R, N> {
    let mut y = Tensor::zeros();
    for r in 0..R {
        for n in 0..N {
            x[[r, n]] = x[[r, n]] + found[[r, n]];
        }
        let mut squares = 0.0;
        for n in 0..N {
            squares += x[[r, n]] * x[[r, n]];
        }
        let factor = 1.0 / (squares / N as f32 + epsilon).sqrt();
        for n in 0..N {
            y[[r, n]] = x[[r, n]] * factor * weights[[n]];
        }
    }
    y
}

/// The stream of tokens before the first layer: a copy of their embeddings, and zeros, which the first layer adds.
#[tensor_kernel]
pub(crate) fn begin(x: &Tensor<f32, R, N>) -> (Tensor<f32, R, N>, Tensor<f32, R, N>) {
    let mut sum = Tensor::zeros();
    let mut found = Tensor::zeros();
    for r in 0..R {
        for n in 0..N {
            sum[[r, n]] = x[[r, n]];
            found[[r, n]] = 0.0;
        }
    }
    (sum, found)
}

/// One row of a stream.
#[tensor_kernel]
pub(crate) fn pick(
    sum: &Tensor<f32, R, N>,
    found: &Tensor<f32, R, N>,
    at: &Tensor<i32, 1>,
) -> (Tensor<f32, 1, N>, Tensor<f32, 1, N>) {
    let mut own_sum = Tensor::zeros();
    let mut own_found = Tensor::zeros();
    for n in 0..N {
        own_sum[[0, n]] = sum[[at[[0]] as usize, n]];
        own_found[[0, n]] = found[[at[[0]] as usize, n]];
    }
    (own_sum, own_found)
}

/// Stores the keys and values of tokens at their positions. Of the `H` heads of `projected`, queries come first, then keys, then values of `G` groups
/// each. Pairs of neighbouring numbers of a key are turned by the angles of the token, whose sines and cosines are `turns`.
#[tensor_kernel]
pub(crate) fn store(
    keys: &mut Tensor<f32, G, { P * 2 }, C>,
    values: &mut Tensor<f32, G, C, { P * 2 }>,
    projected: &Tensor<f32, R, H, P, 2>,
    turns: &Tensor<f32, R, P, 2>,
    positions: &Tensor<i32, R>,
) {
    for r in 0..R {
        for g in 0..G {
            for p in 0..P {
                keys[[g, p * 2, positions[[r]] as usize]] = projected[[r, H - 2 * G + g, p, 0]]
                    * turns[[r, p, 1]]
                    - projected[[r, H - 2 * G + g, p, 1]] * turns[[r, p, 0]];
                keys[[g, p * 2 + 1, positions[[r]] as usize]] = projected[[r, H - 2 * G + g, p, 0]]
                    * turns[[r, p, 0]]
                    + projected[[r, H - 2 * G + g, p, 1]] * turns[[r, p, 1]];
            }
        }
    }
    for r in 0..R {
        for g in 0..G {
            for p in 0..P {
                for h in 0..2 {
                    values[[g, positions[[r]] as usize, p * 2 + h]] = projected[[r, H - G + g, p, h]];
                }
            }
        }
    }
}

/// The queries of tokens, turned as keys are, times `scale`, by the group whose keys they are multiplied with.
#[tensor_kernel]
pub(crate) fn turn_queries(
    projected: &Tensor<f32, R, H, P, 2>,
    turns: &Tensor<f32, R, P, 2>,
    groups: usize,
    sharing: usize,
    scale: f32,
) -> Tensor<f32, R, groups, sharing, P, 2> {
    let mut y = Tensor::zeros();
    for r in 0..R {
        for g in 0..groups {
            for e in 0..sharing {
                for p in 0..P {
                    y[[r, g, e, p, 0]] = (projected[[r, g * sharing + e, p, 0]] * turns[[r, p, 1]]
                        - projected[[r, g * sharing + e, p, 1]] * turns[[r, p, 0]])
                        * scale;
                    y[[r, g, e, p, 1]] = (projected[[r, g * sharing + e, p, 0]] * turns[[r, p, 0]]
                        + projected[[r, g * sharing + e, p, 1]] * turns[[r, p, 1]])
                        * scale;
                }
            }
        }
    }
    y
}

/// `g · σ(g) · u`
#[tensor_kernel]
pub(crate) fn gate(both: &Tensor<f32, R, 2, N>) -> Tensor<f32, R, N> {
    let mut y = Tensor::zeros();
    for r in 0..R {
        for n in 0..N {
            y[[r, n]] = gated(both[[r, 0, n]], both[[r, 1, n]]);
        }
    }
    y
}

/// `g · σ(g) · u`
#[tensor_fn]
pub(crate) fn gated(g: f32, u: f32) -> f32 {
    g / (1.0 + (-g).exp()) * u
}

/// The values of the cache, weighted by how much each token attends to theirs: the softmax of products of `E` queries with the keys of their
/// group.
#[tensor_kernel]
pub(crate) fn attend(
    queries: &Tensor<f32, R, G, E, D>,
    keys: &Tensor<f32, G, D, C>,
    values: &Tensor<f32, G, C, D>,
    positions: &Tensor<i32, R>,
) -> Tensor<f32, R, G, E, D> {
    let mut scores: Tensor<f32, R, G, E, C> = Tensor::zeros();
    for r in 0..R {
        for g in 0..G {
            for e in 0..E {
                for c in 0..C {
                    for d in 0..D {
                        scores[[r, g, e, c]] += queries[[r, g, e, d]] * keys[[g, d, c]];
                    }
                }
            }
        }
    }
    let mut weights: Tensor<f32, R, G, E, C> = Tensor::zeros();
    for r in 0..R {
        for g in 0..G {
            for e in 0..E {
                let mut largest = f32::NEG_INFINITY;
                for c in 0..C {
                    largest = largest.max(if c as i32 <= positions[[r]] {
                        scores[[r, g, e, c]]
                    } else {
                        f32::NEG_INFINITY
                    });
                }
                let mut sum = 0.0;
                for c in 0..C {
                    sum +=
                        if c as i32 <= positions[[r]] { (scores[[r, g, e, c]] - largest).exp() } else { 0.0 };
                }
                for c in 0..C {
                    weights[[r, g, e, c]] = if c as i32 <= positions[[r]] {
                        (scores[[r, g, e, c]] - largest).exp() / sum
                    } else {
                        0.0
                    };
                }
            }
        }
    }
    let mut context = Tensor::zeros();
    for r in 0..R {
        for g in 0..G {
            for e in 0..E {
                for d in 0..D {
                    for c in 0..C {
                        context[[r, g, e, d]] += weights[[r, g, e, c]] * values[[g, c, d]];
                    }
                }
            }
        }
    }
    context
}

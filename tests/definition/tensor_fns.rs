//! Functions of scalars inside kernels, and constants as dimensions.

use tilewright::{Tensor, tensor_fn, tensor_kernel};

pub(crate) const CHANNELS: usize = 5;
pub(crate) const N: usize = 3;
const LEAK: f32 = 0.01;

mod math {
    use tilewright::tensor_fn;

    /// x · σ(x)
    #[tensor_fn]
    pub(crate) fn silu(x: f32) -> f32 {
        x / (1.0 + (-x).exp())
    }

    #[tensor_fn]
    pub(crate) fn mix(a: f32, b: f32, share: f32) -> f32 {
        let rest = 1.0 - share;
        a * share + b * rest
    }
}

#[tensor_fn]
fn leaky(x: f32) -> f32 {
    if x < 0.0 { x * LEAK } else { x }
}

/// Calls others, by name and by path.
#[tensor_fn]
fn gate(x: f32, y: f32) -> f32 {
    let opened = math::silu(x);
    leaky(opened * y) + math::mix(x, y, 0.25)
}

/// Wraps, as integers of kernels do.
#[tensor_fn]
fn hash(seed: u32, value: u32) -> u32 {
    (seed ^ value) * 0x9e37_79b1 + (value >> 7)
}

#[tensor_fn]
fn is_inside(x: f64, y: f64) -> bool {
    x * x + y * y < 1.0
}

#[tensor_fn]
fn halved(x: bf16) -> bf16 {
    x * (0.5 as bf16)
}

#[tensor_fn]
fn two() -> f32 {
    2.0
}

#[tensor_kernel]
pub(crate) fn gated(x: &Tensor<f32, M, K>, y: &Tensor<f32, M, K>, alpha: f32) -> Tensor<f32, M, K> {
    let mut z = Tensor::zeros();
    for i in 0..M {
        for k in 0..K {
            let opened = gate(x[[i, k]], alpha);
            z[[i, k]] = math::mix(opened, leaky(y[[i, k]] - 0.5), 0.75) * two();
        }
    }
    z
}

/// Accumulators and literals that take their types from functions.
#[tensor_kernel]
pub(crate) fn sums(x: &Tensor<f32, M, K>) -> Tensor<f32, M> {
    let mut z = Tensor::zeros();
    for i in 0..M {
        let mut sum = 0.0;
        for k in 0..K {
            sum += math::silu(x[[i, k]]);
        }
        z[[i]] = if leaky(-1.0) < 0.0 { sum } else { leaky(sum) };
    }
    z
}

#[tensor_kernel]
pub(crate) fn other_types(
    seeds: &Tensor<u32, M>,
    x: &Tensor<f64, M>,
    h: &Tensor<bf16, M>,
) -> (Tensor<u32, M>, Tensor<bool, M>, Tensor<bf16, M>) {
    let mut hashes = Tensor::zeros();
    let mut inside = Tensor::full(false);
    let mut halves = Tensor::zeros();
    for i in 0..M {
        hashes[[i]] = hash(seeds[[i]], hash(7, i as u32));
        inside[[i]] = is_inside(x[[i]], 0.5);
        halves[[i]] = halved(h[[i]]);
    }
    (hashes, inside, halves)
}

/// `CHANNELS` is a fixed dimension of the result; `N` is a dimension of an argument that has a constant's name.
#[tensor_kernel]
pub(crate) fn constant_dims(
    x: &Tensor<f32, M, N>,
    w: &Tensor<f32, self::N, self::CHANNELS>,
) -> Tensor<f32, M, CHANNELS, { CHANNELS + 1 }> {
    let mut y = Tensor::zeros();
    let mut scaled: Tensor<f32, CHANNELS> = Tensor::full(2.0);
    for c in 0..CHANNELS {
        scaled[[c]] *= (N + CHANNELS) as f32;
    }
    for i in 0..M {
        for c in 0..CHANNELS {
            for d in 0..CHANNELS + 1 {
                for n in 0..N {
                    y[[i, c, d]] += x[[i, n]] * w[[n, c]] * scaled[[c]];
                }
            }
        }
    }
    y
}

#[test]
fn a_dimension_with_a_constants_name_has_its_value() {
    let (good, bad) = (
        Tensor::<f32, 2>::zeros([2, 3]).expect("it fits"),
        Tensor::<f32, 2>::zeros([2, 4]).expect("it fits"),
    );
    let w = Tensor::<f32, 2>::zeros([3, 5]).expect("it fits");
    assert!(constant_dims(&good, &w).is_ok());
    for error in [constant_dims(&bad, &w), constant_dims::reference(&bad, &w)] {
        let text = error.expect_err("4 is not 3").to_string();
        assert!(text.contains("dimension `N` is 4"), "{text}");
    }
    let wide = Tensor::<f32, 2>::zeros([3, 6]).expect("it fits");
    let text = constant_dims(&good, &wide).expect_err("6 is not 5").to_string();
    assert!(text.contains('5') && text.contains('6'), "{text}");
}

#[test]
fn a_function_is_an_ordinary_one() {
    assert_eq!(leaky(-2.0), -0.02);
    assert_eq!(hash(u32::MAX, 0), 0u32.wrapping_sub(0x9e37_79b1));
}

//! Functions and kernels of a library, used by another crate.

use tilewright::kernel::kernel;
use tilewright::prelude::*;
use tilewright_example_rules::functions::{self, Gates, silu};

#[tensor_kernel]
fn blend(x: &Tensor<f32, N>, y: &Tensor<f32, N>, share: f32) -> Tensor<f32, N> {
    let mut z = Tensor::zeros();
    for i in 0..N {
        z[[i]] = functions::mix(silu(x[[i]]), y[[i]], share);
    }
    z
}

/// Calls a function of another crate.
#[tensor_fn]
fn doubled(x: f64) -> f64 {
    tilewright_example_rules::functions::mix(x, 3.0 * x, 0.5)
}

fn numbers(seed: usize) -> Tensor<f32, 1> {
    Tensor::from_fn([37], |[i]| ((i * 7 + seed) % 13) as f32 / 4.0 - 1.5).unwrap()
}

#[test]
fn a_function_of_another_crate_is_called_by_name_and_by_path() {
    let (x, y) = (numbers(1), numbers(2));
    let (z, expected) = (blend(&x, &y, 0.25).unwrap(), blend::reference(&x, &y, 0.25).unwrap());
    for i in 0..x.len() {
        assert!((z[[i]] - expected[[i]]).abs() <= 1e-6, "{i}: {} {}", z[[i]], expected[[i]]);
        let by_hand = y[[i]] + (silu(x[[i]]) - y[[i]]) * 0.25;
        assert_eq!(expected[[i]], by_hand);
    }
    assert_eq!(doubled(2.0), 4.0);
}

#[test]
fn a_kernel_of_another_crate_is_called_and_found() {
    let (x, y) = (numbers(3), numbers(4));
    let (z, expected) = (Gates::swiglu(&x, &y).unwrap(), Gates::swiglu_reference(&x, &y).unwrap());
    assert!(z.iter().zip(&expected).all(|(z, expected)| (z - expected).abs() <= 1e-6));
    let path = "tilewright_example_rules::functions::Gates_swiglu";
    assert!(std::ptr::eq(kernel(path).unwrap(), Gates::swiglu_kernel()));
    tilewright::check_all().unwrap();
}

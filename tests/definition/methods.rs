//! Kernels among the functions of a type, in modules and in functions.

use tilewright::kernel::kernels;
use tilewright::prelude::*;

use crate::harness::{Call, agree};

/// A layer with a fixed width.
pub(crate) struct Layer;

#[tensor_kernel]
impl Layer {
    /// The width.
    pub(crate) const WIDTH: usize = 6;

    /// A function that is no kernel.
    pub(crate) fn name() -> &'static str {
        "layer"
    }

    /// x·w + b
    #[tensor_kernel]
    pub(crate) fn forward(
        x: &Tensor<f32, N, K>,
        #[constant] w: &Tensor<f32, K, { Self::WIDTH }>,
        b: &Tensor<f32, { Self::WIDTH }>,
    ) -> Tensor<f32, N, { Self::WIDTH }> {
        let mut y = Tensor::zeros();
        for n in 0..N {
            for j in 0..Self::WIDTH {
                let mut sum = 0.0;
                for k in 0..K {
                    sum += x[[n, k]] * w[[k, j]];
                }
                y[[n, j]] = sum + b[[j]];
            }
        }
        y
    }

    /// Twice each element, of any type.
    #[tensor_kernel]
    fn double<T: Number>(x: &Tensor<T, N>) -> Tensor<T, N> {
        let mut y = Tensor::zeros();
        for i in 0..N {
            y[[i]] = x[[i]] + x[[i]];
        }
        y
    }

    /// Clears what is negative.
    #[tensor_kernel]
    fn rectify(x: &mut Tensor<f32, N>) {
        for i in 0..N {
            x[[i]] = x[[i]].max(0.0);
        }
    }

    #[cfg(any())]
    #[tensor_kernel]
    fn absent(x: &Tensor<f32, N>) -> Tensor<f32, N> {
        let mut y = Tensor::zeros();
        for i in 0..N {
            y[[i]] = nowhere::function(x[[i]]);
        }
        y
    }
}

/// Another type with a kernel of the same name.
struct Other;

#[tensor_kernel]
impl Other {
    #[tensor_kernel]
    fn rectify(x: &Tensor<f32, N>) -> Tensor<f32, N> {
        let mut y = Tensor::zeros();
        for i in 0..N {
            y[[i]] = x[[i]].abs();
        }
        y
    }
}

mod inner {
    use tilewright::{Tensor, tensor_kernel};

    #[tensor_kernel]
    pub(super) fn negate(x: &Tensor<f32, N>) -> Tensor<f32, N> {
        let mut y = Tensor::zeros();
        for i in 0..N {
            y[[i]] = -x[[i]];
        }
        y
    }
}

#[test]
fn functions_of_a_type_are_kernels() {
    assert_eq!(Layer::name(), "layer");
    let x = Tensor::from_fn([3, 5], |[i, k]| (i + 2 * k) as f32).unwrap();
    let w = Tensor::from_fn([5, Layer::WIDTH], |[k, j]| (k * j) as f32 - 3.0).unwrap();
    let b = Tensor::from_fn([Layer::WIDTH], |[j]| j as f32).unwrap();
    let y = Layer::forward(&x, &w, &b).unwrap();
    assert_eq!(y, Layer::forward_reference(&x, &w, &b).unwrap());
    let mut into = Tensor::zeros([3, Layer::WIDTH]).unwrap();
    Layer::forward_into(&x, &w, &b, &mut into).unwrap();
    assert_eq!(into, y);
    for dims in [[1, 1], [7, 13]] {
        agree(Layer::forward_kernel(), &Call { dims: &dims, scalars: &[], bounds: &[] });
    }
}

#[test]
fn generic_functions_and_updates_are_kernels_too() {
    let x = Tensor::from_slice(&[1u8, 200], [2]).unwrap();
    assert_eq!(Layer::double(&x).unwrap().as_slice(), [2, 144]);
    assert_eq!(Layer::double_reference(&x).unwrap().as_slice(), [2, 144]);
    assert_eq!(Layer::double_kernel::<f64>().name(), "Layer_double_f64");
    let mut x = Tensor::from_slice(&[-1.0f32, 2.0], [2]).unwrap();
    Layer::rectify(&mut x).unwrap();
    assert_eq!(x.as_slice(), [0.0, 2.0]);
    assert_eq!(Other::rectify(&inner::negate(&x).unwrap()).unwrap().as_slice(), [0.0, 2.0]);
}

#[test]
fn kernels_of_a_type_are_named_after_it_too() {
    let names: Vec<String> = kernels().iter().map(|kernel| kernel.path()).collect();
    for name in ["Layer_forward", "Layer_rectify", "Other_rectify", "Layer_double_i16"] {
        let path = format!("{}::{name}", module_path!());
        assert_eq!(names.iter().filter(|known| **known == path).count(), 1, "{path} in {names:?}");
    }
    assert!(!names.iter().any(|name| name.ends_with("absent")));
}

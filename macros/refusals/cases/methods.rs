use tilewright::{Tensor, tensor_fn, tensor_kernel};

struct Layer;

#[tensor_kernel(accuracy = 1e-5)]
impl Layer {
    #[tensor_kernel]
    fn forward(&self, x: &Tensor<f32, N>) -> Tensor<f32, N> {
        let mut y = Tensor::zeros();
        for i in 0..N {
            y[[i]] = x[[j]];
        }
        y
    }

    #[tensor_fn]
    fn scale(x: f32) -> f32 {
        x * 2.0
    }
}

#[tensor_kernel]
impl Layer {
    fn nothing() {}
}

struct Generic<T>(T);

#[tensor_kernel]
impl<T> Generic<T> {
    #[tensor_kernel]
    fn copy(x: &Tensor<f32, N>) -> Tensor<f32, N> {
        let mut y = Tensor::zeros();
        for i in 0..N {
            y[[i]] = x[[i]];
        }
        y
    }
}

#[tensor_kernel]
impl Clone for Layer {
    #[tensor_kernel]
    fn clone(x: &Tensor<f32, N>) -> Tensor<f32, N> {
        let mut y = Tensor::zeros();
        for i in 0..N {
            y[[i]] = x[[i]];
        }
        y
    }
}

fn main() {}

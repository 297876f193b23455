use tilewright::{Tensor, tensor_kernel};

const CLOSE: f64 = 1e-5;

#[tensor_kernel(fast)]
fn unknown(a: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    for i in 0..N {
        c[[i]] = a[[i]];
    }
    c
}

#[tensor_kernel(accuracy)]
fn without_value(a: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    for i in 0..N {
        c[[i]] = a[[i]];
    }
    c
}

#[tensor_kernel(accuracy = CLOSE)]
fn no_number(a: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    for i in 0..N {
        c[[i]] = a[[i]];
    }
    c
}

#[tensor_kernel(accuracy = 1.0)]
fn too_far(a: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    for i in 0..N {
        c[[i]] = a[[i]];
    }
    c
}

#[tensor_kernel(accuracy = 1e-5, accuracy = 1e-6)]
fn twice(a: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    for i in 0..N {
        c[[i]] = a[[i]];
    }
    c
}

#[tensor_kernel(accuracy: 1e-5)]
fn no_option(a: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    for i in 0..N {
        c[[i]] = a[[i]];
    }
    c
}

#[tensor_kernel(multiply_padding = true)]
fn word_with_value(a: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    for i in 0..N {
        c[[i]] = a[[i]];
    }
    c
}

fn main() {}

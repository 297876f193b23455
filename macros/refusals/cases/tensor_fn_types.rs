use tilewright::{Tensor, tensor_fn, tensor_kernel};

#[tensor_fn]
fn first(x: f32) -> f32 {
    second(x)
}

#[tensor_fn]
fn second(x: f32) -> f32 {
    x * 2.0
}

#[tensor_fn]
fn fine(x: f32) -> f32 {
    x + 1.0
}

fn ordinary(x: f32) -> f32 {
    x
}

#[tensor_kernel]
fn wrong_types(a: &Tensor<f64, N>) -> Tensor<f64, N> {
    let mut c = Tensor::zeros();
    for i in 0..N {
        c[[i]] = fine(a[[i]]);
    }
    c
}

#[tensor_kernel]
fn wrong_number(a: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    for i in 0..N {
        c[[i]] = fine(a[[i]], 1.0);
    }
    c
}

#[tensor_kernel]
fn calls_ordinary(a: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    for i in 0..N {
        c[[i]] = ordinary(a[[i]]);
    }
    c
}

fn main() {}

use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f(a: &Tensor, b: &Tensor<f32>, x: &Tensor<f32, N>) -> Tensor<f32> {
    let mut c = Tensor::zeros();
    c[[0]] = x[[0]];
    c
}

#[tensor_kernel]
fn an_index_too_many(x: &Tensor<f32>) -> Tensor<f32> {
    let mut c = Tensor::zeros();
    c[[0]] = x[[]];
    c[[]] = x[[0]];
    c
}

fn main() {}

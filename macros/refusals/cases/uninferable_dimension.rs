use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f(a: &Tensor<f32, { N + 1 }>) -> Tensor<f32, 1> {
    let mut c = Tensor::zeros();
    c[[0]] = a[[0]];
    c
}

fn main() {}

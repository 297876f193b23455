use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f(a: &Tensor<f32, N>) {
    let x = a[[0]];
}

fn main() {}

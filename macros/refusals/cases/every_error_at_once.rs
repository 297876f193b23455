use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
pub fn f(a: &Tensor<f32, M>, b: Tensor<f32, M>) -> Tensor<f32, M, P> {
    let mut c = Tensor::zeros();
    for i in 0..M {
        c[[i]] = a[[i, i]].erfc();
        while true {}
    }
    c
}

fn main() {}

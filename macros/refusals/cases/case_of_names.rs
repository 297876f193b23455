use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f(a: &Tensor<f32, M, N>, scale: f32) -> Tensor<f32, m, N> {
    let mut c = Tensor::zeros();
    for i in 0..M {
        for j in 0..n {
            c[[i, j]] = a[[i, j]] * Scale;
        }
    }
    c
}

#[tensor_kernel]
fn g(a: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    let copy = a.clone();
    for (i, x) in a.iter().enumerate() {
        let (left, right) = (a[[0]], a[[1]]);
        c[[i]] = left + right + copy[[i]];
    }
    c
}

fn main() {}

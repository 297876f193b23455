use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f(a: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut c = Tensor::zeros(N);
    let mut t = Tensor::zeros();
    let mut u: Tensor<f32, N> = a;
    let mut v: Tensor<f32, N> = Tensor::random();
    for i in 0..N {
        c[[i]] = a[[i]] + t[[i]];
    }
    c
}

fn main() {}

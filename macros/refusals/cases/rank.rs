use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f(a: &Tensor<f32, N, N>) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    for i in 0..N {
        c[[i]] = a[[i]] + a[[i, i, i]];
    }
    c
}

fn main() {}

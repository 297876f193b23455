use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f(a: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    for i in 0..N {
        c[[i]] = a[[j]] + scale * d[[i]];
        total += a[[i]];
        c[[i]] = P as f32;
    }
    c
}

fn main() {}

use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f(a: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    for i in 0.. {
        c[[i]] = a[[i]];
    }
    for (i, j) in 0..N {
        c[[i]] = a[[j]];
    }
    c
}

fn main() {}

use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f((a, b): (f32, f32), mut s: f32, x: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    for i in 0..N {
        c[[i]] = x[[i]] * s;
    }
    c
}

fn main() {}

use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f(a: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    for i in 0..N {
        c[[i]] = a[[i]].cbrt() + a[[i]].clamp(0.0, 1.0) + a[[i]].gelu();
    }
    c
}

fn main() {}

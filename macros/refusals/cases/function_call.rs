use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f(a: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    for i in 0..N {
        c[[i]] = gelu(a[[i]]) + f32::exp(a[[i]]) + f32::from(i);
    }
    c
}

fn main() {}

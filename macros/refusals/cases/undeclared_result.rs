use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f(x: &mut Tensor<f32, N>) {
    let mut c: Tensor<f32, N> = Tensor::zeros();
    for i in 0..N {
        c[[i]] = x[[i]];
        x[[i]] = 0.0;
    }
    c
}

fn main() {}

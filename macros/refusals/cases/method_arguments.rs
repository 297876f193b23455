use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f(a: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    for i in 0..N {
        c[[i]] = a[[i]].exp(1.0) + a[[i]].max() + a[[i]].mul_add(2.0);
    }
    c
}

fn main() {}

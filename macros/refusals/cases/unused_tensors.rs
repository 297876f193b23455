use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f(a: &Tensor<f32, N>, x: &mut Tensor<f32, N>) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    let mut t: Tensor<f32, N> = Tensor::zeros();
    let mut u: Tensor<f32, N> = Tensor::zeros();
    for i in 0..N {
        c[[i]] = a[[i]] + x[[i]];
        t[[i]] = a[[i]];
    }
    c
}

fn main() {}

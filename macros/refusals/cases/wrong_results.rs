use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f(a: &Tensor<f32, N>, x: &mut Tensor<f32, N>) -> (Tensor<f32, N>, Tensor<f32, N>, Tensor<f32, N>, Tensor<f32, N>, Tensor<f32, N>) {
    let mut c = Tensor::zeros();
    let sum = 1.0;
    for i in 0..N {
        c[[i]] = a[[i]];
        x[[i]] = sum;
    }
    (c, c, a, x, sum)
}

fn main() {}

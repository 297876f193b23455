use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f(a: &Tensor<f32, 0>, b: &Tensor<f32, -1>, x: &Tensor<f32, N, 'static>, y: &Tensor<f32, [N; 2]>) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    c[[0]] = x[[0, 0]];
    c
}

fn main() {}

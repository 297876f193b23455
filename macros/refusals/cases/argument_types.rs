use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f(
    a: &[f32],
    b: Tensor<f32, N>,
    alpha: &f32,
    count: u64,
    name: &str,
    table: Vec<f32>,
    x: &'static Tensor<f32, N>,
) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    for i in 0..N {
        c[[i]] = x[[i]];
    }
    c
}

fn main() {}

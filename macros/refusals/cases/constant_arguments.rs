use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f(
    #[constant] x: &mut Tensor<f32, N>,
    #[constant] s: f32,
    #[constant] n: usize,
    #[constant(packed)] u: &Tensor<f32, N>,
    #[constant]
    #[constant]
    v: &Tensor<f32, N>,
    #[frozen] w: &Tensor<f32, N>,
) {
    for i in 0..N {
        x[[i]] += s * u[[i]] * v[[i]] * w[[i]] * n as f32;
    }
}

fn main() {}

use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f(a: &Tensor<u32, N>, b: &Tensor<usize, N>, x: &Tensor<N, f32>) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    for i in 0..N {
        c[[i]] = a[[i]] as f32;
    }
    c
}

fn main() {}

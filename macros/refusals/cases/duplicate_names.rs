use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f(a: &Tensor<f32, N>, b: &Tensor<f32, a>, N: f32) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    for i in 0..N {
        for i in 0..2 {
            let a = 1.0;
            let N = 2.0;
            c[[i]] = a;
        }
    }
    c
}

fn main() {}

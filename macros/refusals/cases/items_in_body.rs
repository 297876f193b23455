use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f(a: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    const HALF: f32 = 0.5;
    fn g() {}
    for i in 0..N {
        c[[i]] = a[[i]] * HALF;
    }
    c
}

fn main() {}

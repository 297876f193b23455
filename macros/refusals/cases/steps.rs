use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f(a: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    for i in (0..N).step_by(0) {
        c[[i]] = a[[i]];
    }
    for i in (0..N).step_by(2).step_by(3) {
        c[[i]] = a[[i]];
    }
    c
}

fn main() {}

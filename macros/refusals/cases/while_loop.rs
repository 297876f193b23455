use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f(a: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    let mut i = 0;
    while i < N {
        c[[i]] = a[[i]];
        i += 1;
    }
    c
}

fn main() {}

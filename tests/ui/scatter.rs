use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f(a: &Tensor<f32, N>, ids: &Tensor<i32, N>, v: usize) -> Tensor<f32, v> {
    let mut c = Tensor::zeros();
    for i in 0..N {
        c[[ids[[i]] as usize]] += a[[i]];
    }
    c
}

fn main() {}

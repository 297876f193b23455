use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f(a: &Tensor<f32, N>, b: &Tensor<f64, N>, ids: &Tensor<i32, N>) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    for i in 0..N {
        c[[i]] = a[[i]] + b[[i]];
        c[[i]] += a[[ids[[i]]]];
        let x: f64 = a[[i]];
    }
    c
}

fn main() {}

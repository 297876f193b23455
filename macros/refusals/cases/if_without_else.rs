use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f(a: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    for i in 0..N {
        let x = if a[[i]] > 0.0 { a[[i]] };
        let y = { let z = 1.0; };
        c[[i]] = a[[i]];
    }
    c
}

fn main() {}

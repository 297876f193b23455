use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn scalar(a: &Tensor<f32, N>) -> f32 {
    let mut c = 0.0;
    for i in 0..N {
        c += a[[i]];
    }
    c
}

#[tensor_kernel]
fn result(a: &Tensor<f32, N>) -> Result<Tensor<f32, N>, Error> {
    let mut c = Tensor::zeros();
    for i in 0..N {
        c[[i]] = a[[i]];
    }
    Ok(c)
}

fn main() {}

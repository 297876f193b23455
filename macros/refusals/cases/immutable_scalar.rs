use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f(a: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    for i in 0..N {
        let sum = 0.0;
        for k in 0..N {
            sum += a[[k]];
        }
        i = 0;
        c[[i]] = sum;
    }
    c
}

fn main() {}

use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f(a: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    for i in 0..N {
        if a[[i]] < 0.0 {
            continue;
        }
        if a[[i]] > 1.0 {
            break;
        }
        c[[i]] = a[[i]];
    }
    c
}

fn main() {}

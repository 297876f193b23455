use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f(a: &Tensor<f32, M, N>, lengths: &Tensor<i32, M>, limit: i32) -> Tensor<f32, M> {
    let mut c = Tensor::zeros();
    for i in 0..M {
        for j in 0..lengths[[i]] as usize {
            c[[i]] += a[[i, j]];
        }
        let length = lengths[[i]] as usize;
        for j in 0..length {
            c[[i]] += a[[i, j]];
        }
        for j in 0..limit as usize {
            c[[i]] += a[[i, j]];
        }
    }
    c
}

fn main() {}

use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f(a: &Tensor<i32, N>) -> Tensor<i32, N> {
    let mut c = Tensor::zeros();
    for i in 0..N {
        c[[i]] = a[[i]].exp();
    }
    c
}

fn main() {}

use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f(a: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    for i in 0..N {
        #[unroll]
        for k in 0..4 {
            c[[i]] += a[[i]];
        }
        #[allow(unused)]
        let x = 1.0;
    }
    c
}

fn main() {}

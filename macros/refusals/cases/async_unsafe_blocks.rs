use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f(a: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    for i in 0..N {
        unsafe {
            c[[i]] = a[[i]];
        }
        let x = a[[i]]?;
        let y = async { 1.0 };
    }
    c
}

fn main() {}

use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f<T: Copy>(a: &Tensor<T, N>) -> Tensor<f32, N>
where
    T: Default,
{
    let mut c = Tensor::zeros();
    c[[0]] = 1.0;
    c
}

fn main() {}

use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f(a: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    for i in 0..N {
        c[[i]] = a[[i]] as u32 as f32 + (a[[i]] as bool) as f32 + 3u64 as f32;
    }
    c
}

fn main() {}

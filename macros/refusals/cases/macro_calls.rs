use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f(a: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    for i in 0..N {
        println!("{i}");
        assert!(i < N);
        c[[i]] = max!(a[[i]], 0.0);
    }
    c
}

fn main() {}

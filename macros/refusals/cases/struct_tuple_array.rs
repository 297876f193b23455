use tilewright::{Tensor, tensor_kernel};

#[tensor_kernel]
fn f(a: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    for i in 0..N {
        let pair = (a[[i]], 0.0);
        let list = [a[[i]], 1.0];
        let point = Point { x: a[[i]] };
        c[[i]] = pair.0;
    }
    c
}

fn main() {}

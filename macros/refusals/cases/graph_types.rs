use tilewright::{Tensor, tensor_graph, tensor_kernel};

#[tensor_kernel]
fn twice(x: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut y = Tensor::zeros();
    for i in 0..N {
        y[[i]] = x[[i]] + x[[i]];
    }
    y
}

#[tensor_graph]
fn another_rank(x: &Tensor<f32, N, M>) -> Tensor<f32, N> {
    twice(x)
}

fn main() {}

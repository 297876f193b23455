use tilewright::{Tensor, tensor_graph, tensor_kernel};

#[tensor_kernel]
fn product(a: &Tensor<f32, M, K>, b: &Tensor<f32, K, 8>) -> Tensor<f32, M, 8> {
    let mut c = Tensor::zeros();
    for i in 0..M {
        for j in 0..8 {
            for k in 0..K {
                c[[i, j]] += a[[i, k]] * b[[k, j]];
            }
        }
    }
    c
}

#[tensor_graph]
fn two_sizes(a: &Tensor<f32, N, 3>, b: &Tensor<f32, 4, 8>) -> Tensor<f32, N, 8> {
    product(a, b)
}

#[tensor_graph]
fn another_size(a: &Tensor<f32, N, K>, b: &Tensor<f32, K, 9>) -> Tensor<f32, N, 8> {
    product(a, &b)
}

#[tensor_graph]
fn through_a_graph(a: &Tensor<f32, N, 5>, b: &Tensor<f32, 6, 9>) -> Tensor<f32, N, 8> {
    let c = another_size(a, b);
    c
}

fn main() {}

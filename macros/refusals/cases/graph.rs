use tilewright::{Tensor, tensor_graph, tensor_kernel};

#[tensor_kernel]
fn twice(x: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut y = Tensor::zeros();
    for i in 0..N {
        y[[i]] = x[[i]] + x[[i]];
    }
    y
}

#[tensor_graph(fast)]
async fn options(x: &Tensor<f32, N>) -> Tensor<f32, N> {
    twice(x)
}

#[tensor_graph]
fn arguments<T>(&self, x: Tensor<f32, N>, y: &mut Tensor<f32, N>, (a, b): &Tensor<f32, N>) -> Tensor<f32, M> {
    twice(y)
}

#[tensor_graph]
fn returns_nothing(x: &Tensor<f32, N>) {
    twice(x);
}

#[tensor_graph]
fn closures(x: &Tensor<f32, N>) -> Tensor<f32, N> {
    let again = |x| twice(x);
    again(x)
}

fn main() {}

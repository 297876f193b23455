use tilewright::prelude::*;

#[tensor_kernel]
fn bounds<'a, T: Copy, U, const K: usize>(a: &Tensor<T, N>, b: &Tensor<U, K>) -> Tensor<f32, N>
where
    Vec<T>: Default,
{
    let mut c = Tensor::zeros();
    c[[0]] = 1.0;
    c
}

#[tensor_kernel]
fn no_type_is_both<T: Integer>(a: &Tensor<T, N>) -> Tensor<T, N> {
    let mut c = Tensor::zeros();
    for i in 0..N {
        c[[i]] = a[[i]].exp();
    }
    c
}

#[tensor_kernel]
fn constants<T: Number>(a: &Tensor<T, N>) -> Tensor<T, N> {
    let mut c = Tensor::full(T::ANSWER);
    for i in 0..N {
        c[[i]] += a[[i]];
    }
    c
}

#[tensor_fn]
fn halved<T: Number>(x: f32) -> T {
    x as T
}

fn main() {}

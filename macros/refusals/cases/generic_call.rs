use tilewright::{Float, Tensor, tensor_fn, tensor_kernel};

#[tensor_fn]
fn square<T: Float>(x: T) -> T {
    x * x
}

#[tensor_kernel]
fn exponential<T: Float>(x: &Tensor<T, N>) -> Tensor<T, N> {
    let mut y = Tensor::zeros();
    for i in 0..N {
        y[[i]] = square(x[[i]]).exp();
    }
    y
}

fn main() {
    let whole = Tensor::from_slice(&[1i32, 2], [2]).unwrap();
    let _ = exponential(&whole);
    let _ = exponential::kernel::<bool>();
    let _ = square(3u8);
}

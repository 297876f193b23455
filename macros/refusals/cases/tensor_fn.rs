use tilewright::{Tensor, tensor_fn, tensor_kernel};

#[tensor_fn]
fn recursive(x: f32) -> f32 {
    if x > 0.0 { recursive(x - 1.0) } else { x }
}

#[tensor_fn]
fn no_result(x: f32) {
    x
}

#[tensor_fn]
fn of_positions(i: usize) -> f32 {
    i as f32
}

#[tensor_fn]
fn of_a_tensor(x: &Tensor<f32, N>) -> f32 {
    x[[0]]
}

#[tensor_fn]
fn generic<T>(x: T) -> T {
    x
}

#[tensor_fn(fast)]
fn statements(mut x: f32) -> f32 {
    for i in 0..3 {
        x += 1.0;
    }
    x
}

#[tensor_fn]
fn casts(x: f32) -> f32 {
    let place = x as usize;
    unknown + place as f32
}

#[tensor_fn]
fn wrong_type(x: f64) -> f32 {
    x
}

#[tensor_fn]
struct NoFunction;

fn ordinary(x: f32) -> f32 {
    x
}

#[tensor_fn]
fn fine(x: f32) -> f32 {
    x + 1.0
}

#[tensor_kernel]
fn generic_call(a: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut c = Tensor::zeros();
    for i in 0..N {
        fine(a[[i]]);
        c[[i]] = fine::<f32>(a[[i]]) + (fine)(1.0) + Some(1.0);
    }
    c
}

fn main() {
    let _ = ordinary(1.0);
}

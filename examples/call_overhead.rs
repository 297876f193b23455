//! The overhead of a call of a compiled kernel: a kernel of one element is called repeatedly.
//!
//! `cargo run --release --example call_overhead`

use std::hint::black_box;
use std::time::Instant;

use tilewright::prelude::*;

/// y = x + 1
#[tensor_kernel]
fn increment(x: &Tensor<f32, N>, y: &mut Tensor<f32, N>) {
    for i in 0..N {
        y[[i]] = x[[i]] + 1.0;
    }
}

/// C = A·B
#[tensor_kernel]
fn matmul(a: &Tensor<f32, M, K>, b: &Tensor<f32, K, N>) -> Tensor<f32, M, N> {
    let mut c = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            for k in 0..K {
                c[[i, j]] += a[[i, k]] * b[[k, j]];
            }
        }
    }
    c
}

const ROUNDS: usize = 21;
const CALLS: u32 = 20_000;

/// The median over the rounds of the time of one call, in nanoseconds.
fn nanoseconds(mut call: impl FnMut()) -> f64 {
    call();
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            (0..CALLS).for_each(|_| call());
            start.elapsed().as_nanos() as f64 / f64::from(CALLS)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

fn main() -> Result<(), tilewright::Error> {
    let x = Tensor::full([1], 1.0f32)?;
    let mut y = Tensor::full([1], 0.0f32)?;
    let in_place = nanoseconds(|| increment(black_box(&x), black_box(&mut y)).expect("the arguments fit"));
    println!("in place, 2 tensors of 1 element: {in_place:.0} ns a call");

    let (a, b) = (Tensor::full([1, 1], 2.0f32)?, Tensor::full([1, 1], 3.0f32)?);
    let mut c = Tensor::full([1, 1], 0.0f32)?;
    let into = nanoseconds(|| matmul::call_into(black_box(&a), &b, &mut c).expect("the arguments fit"));
    println!("matmul of 1×1×1 into the caller's tensor: {into:.0} ns a call");
    let returned = nanoseconds(|| {
        black_box(matmul(black_box(&a), &b).expect("the arguments fit"));
    });
    println!("matmul of 1×1×1 with a new tensor: {returned:.0} ns a call");
    Ok(())
}

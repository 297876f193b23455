//! Define a kernel, tune it for a few seconds, and use what was found.
//!
//! `cargo run --release --example quickstart`

use std::path::Path;
use std::time::{Duration, Instant};

use tilewright::prelude::*;
use tilewright::tuning::Tuner;

/// C = A·B
#[tensor_kernel]
pub fn matmul(a: &Tensor<f32, M, K>, b: &Tensor<f32, K, N>) -> Tensor<f32, M, N> {
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

const SIZE: usize = 384;

/// The shortest of several calls.
fn time<T>(mut call: impl FnMut() -> Result<T, tilewright::Error>) -> Result<Duration, tilewright::Error> {
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        call()?;
        best = best.min(start.elapsed());
    }
    Ok(best)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Lets the tuner run candidates in a process of their own.
    tilewright::init();

    let a = Tensor::from_fn([SIZE, SIZE], |[i, k]| ((i * 7 + k) % 11) as f32 - 5.0)?;
    let b = Tensor::from_fn([SIZE, SIZE], |[k, j]| ((k + j * 3) % 13) as f32 - 6.0)?;

    // The definition is ordinary Rust: it runs as it stands, and every schedule must agree with it.
    let expected = matmul::reference(&a, &b)?;
    let definition = time(|| matmul::reference(&a, &b))?;
    let untuned = time(|| matmul(&a, &b))?;

    let size = SIZE as i64;
    let shape = [("M", size), ("N", size), ("K", size)];
    let records = Path::new("target/quickstart");
    let tuned = Tuner::new()
        .trials(64)
        .time_limit(Duration::from_secs(10))
        .records(records)
        .progress(true)
        .tune(matmul::kernel(), &shape)?;
    println!("\n{tuned}\n");

    // The record is a line of text. Another program finds it with `use_records`, or embeds it with `ship!`.
    tilewright::use_records(records)?;
    let best = time(|| matmul(&a, &b))?;
    let result = matmul(&a, &b)?;
    assert_eq!(result.as_slice(), expected.as_slice(), "these numbers are exact in f32");

    let flops = 2.0 * (SIZE as f64).powi(3);
    for (name, time) in
        [("the definition as it stands", definition), ("default schedule", untuned), ("tuned schedule", best)]
    {
        let gflops = flops / time.as_secs_f64() / 1e9;
        println!("{name:>28}: {:>9.1} µs  {gflops:>7.2} GFLOP/s", time.as_secs_f64() * 1e6);
    }
    println!("\nThe tuned schedule, step by step:\n{}", tilewright::explain(matmul::kernel(), &shape)?.trace);
    Ok(())
}

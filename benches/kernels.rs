//! Matrix products as they come up in a transformer's layers, the normalisation of rows, and a histogram, tuned and compared.
//!
//! `cargo bench --bench kernels` tunes what has no record in `tuned/`, and then compares definition, default schedule and
//! tuned schedule. `-- --help` lists the options.

use tilewright::{Tensor, tensor_kernel};

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

/// The rows of a matrix, each with mean 0 and variance 1.
#[tensor_kernel]
fn normalize_rows(x: &Tensor<f32, M, N>, epsilon: f32) -> Tensor<f32, M, N> {
    let mut y = Tensor::zeros();
    for i in 0..M {
        let mut sum = 0.0;
        for j in 0..N {
            sum += x[[i, j]];
        }
        let mean = sum / N as f32;
        let mut squares = 0.0;
        for j in 0..N {
            squares += (x[[i, j]] - mean) * (x[[i, j]] - mean);
        }
        let scale = (squares / N as f32 + epsilon).rsqrt();
        for j in 0..N {
            y[[i, j]] = (x[[i, j]] - mean) * scale;
        }
    }
    y
}

/// How often each number occurs.
#[tensor_kernel]
fn histogram(ids: &Tensor<i32, N>, bins: usize) -> Tensor<i32, bins> {
    let mut counts = Tensor::zeros();
    for i in 0..N {
        counts[[ids[[i]] as usize]] += 1;
    }
    counts
}

tilewright::bench_main! {
    matmul[M = 1024, N = 1024, K = 1024],
    matmul[M = 128, N = 768, K = 768],
    matmul[M = 128, N = 3072, K = 768],
    matmul[M = 128, N = 768, K = 3072],
    normalize_rows[M = 128, N = 768],
    histogram[N = 1_000_000, bins = 256],
}

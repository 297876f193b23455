//! A sum, a softmax and a product of matrices on a GPU, compared with their definitions.
//!
//! `cargo run --release --example gpu_quickstart` needs an NVIDIA GPU with its driver. With `-- --mock`, a driver made of the
//! simulator executes the same PTX on the processor.

use std::error::Error;

use tilewright::prelude::*;

/// y = a + b
#[tensor_kernel]
pub fn add(a: &Tensor<f32, N>, b: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut y = Tensor::zeros();
    for i in 0..N {
        y[[i]] = a[[i]] + b[[i]];
    }
    y
}

/// The exponentials of each row, scaled to a sum of one.
#[tensor_kernel]
pub fn softmax(x: &Tensor<f32, M, N>) -> Tensor<f32, M, N> {
    let mut y = Tensor::zeros();
    for i in 0..M {
        let mut most = f32::NEG_INFINITY;
        for j in 0..N {
            most = most.max(x[[i, j]]);
        }
        let mut sum = 0.0;
        for j in 0..N {
            sum += (x[[i, j]] - most).exp();
        }
        for j in 0..N {
            y[[i, j]] = (x[[i, j]] - most).exp() / sum;
        }
    }
    y
}

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

/// Compares the elements of two results.
fn compare(name: &str, found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len(), "{name}");
    let differences = found.iter().zip(expected).map(|(found, expected)| (found - expected).abs());
    let difference = differences.fold(0.0, f32::max);
    println!("{name:>8}: largest difference to the definition {difference:.1e}");
    assert!(difference < 1e-4, "{name} is wrong");
}

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().any(|argument| argument == "--mock") {
        let file = tilewright_mock_cuda::library().ok_or("the mock driver is not built")?;
        tilewright::gpu::load_driver(&file)?;
    }
    let gpu = tilewright::gpu::open(0)?;
    println!("{}", gpu.label());

    let [m, n, k] = [67, 96, 40];
    let number = |position: usize| ((position * 7) % 23) as f32 / 8.0 - 1.0;
    let a = Tensor::from_fn([m, k], |[i, j]| number(i * k + j))?;
    let b = Tensor::from_fn([k, n], |[i, j]| number(3 * (i * n + j)))?;
    let [p, q] = [1, 11].map(|step| Tensor::from_fn([1000], |[i]| number(step * i)));
    let (p, q) = (p?, q?);

    let sum = add::on(&gpu, &gpu.upload(&p)?, &gpu.upload(&q)?)?;
    // The product stays in the memory of the GPU, where the next kernel reads it.
    let product = matmul::on(&gpu, &gpu.upload(&a)?, &gpu.upload(&b)?)?;
    let rows = softmax::on(&gpu, &product)?;

    compare("add", sum.to_host()?.as_slice(), add::reference(&p, &q)?.as_slice());
    let product = product.to_host()?;
    compare("matmul", product.as_slice(), matmul::reference(&a, &b)?.as_slice());
    compare("softmax", rows.to_host()?.as_slice(), softmax::reference(&product)?.as_slice());
    Ok(())
}

//! A sum, a softmax and a product of matrices on a GPU, compared with their definitions.
//!
//! `cargo run --release --example gpu_quickstart` needs an NVIDIA GPU with its driver. With `-- --mock`, a driver made of the
//! simulator executes the same PTX on the processor.

use std::error::Error;

use tilewright::Kernel;
use tilewright::core::device::{Arguments, BufferArgument, Device};
use tilewright::core::lower::{LowerOptions, lower};
use tilewright::core::target::RunOptions;
use tilewright::prelude::*;
use tilewright::search::schedule_by_default;
use tilewright_gpu::Gpu;

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

/// Runs a kernel by its default schedule on tensors in the memory of the device.
fn run(
    device: &dyn Device,
    kernel: &Kernel,
    dims: &[(&str, i64)],
    inputs: &[&[f32]],
    len: usize,
) -> Result<Vec<f32>, Box<dyn Error>> {
    let program = kernel.program_for(&kernel.dims_by_name(dims)?)?;
    let schedule = schedule_by_default(&program, device.target().clone());
    let flat = lower(schedule.program(), &LowerOptions::of(device.target()))?;
    let compiled = device.compile(&[&flat]).remove(0)?;
    let mut buffers = Vec::new();
    for input in inputs {
        let bytes: Vec<u8> = input.iter().flat_map(|element| element.to_le_bytes()).collect();
        let mut buffer = device.allocate(bytes.len())?;
        device.upload(&bytes, buffer.as_mut_slice())?;
        buffers.push(buffer);
    }
    let mut output = device.allocate(len * size_of::<f32>())?;
    let mut tensors: Vec<BufferArgument<'_>> =
        buffers.iter().map(|buffer| BufferArgument::DeviceRead(buffer.as_slice())).collect();
    tensors.push(BufferArgument::DeviceWrite(output.as_mut_slice()));
    let mut arguments = Arguments { dims: &[], scalars: &[], buffers: &mut tensors };
    compiled.run(&mut arguments, RunOptions::of(device.target()))?;
    let mut bytes = vec![0; output.len()];
    device.download(output.as_slice(), &mut bytes)?;
    Ok(bytes.chunks_exact(4).map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect())
}

/// The largest difference between two results.
fn difference(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    found.iter().zip(expected).map(|(found, expected)| (found - expected).abs()).fold(0.0, f32::max)
}

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().any(|argument| argument == "--mock") {
        let file = tilewright_mock_cuda::library().ok_or("the mock driver is not built")?;
        tilewright_gpu::load_driver(&file)?;
    }
    let device = Gpu::open(0)?;
    println!("{}", Device::label(&device));

    let [m, n, k] = [67, 96, 40];
    let number = |position: usize| ((position * 7) % 23) as f32 / 8.0 - 1.0;
    let a = Tensor::from_fn([m, k], |[i, j]| number(i * k + j))?;
    let b = Tensor::from_fn([k, n], |[i, j]| number(3 * (i * n + j)))?;
    let x = Tensor::from_fn([m, n], |[i, j]| number(5 * (i * n + j)))?;
    let [p, q] = [1, 11].map(|step| Tensor::from_fn([1000], |[i]| number(step * i)));
    let (p, q) = (p?, q?);

    let sum = run(&device, add::kernel(), &[("N", 1000)], &[p.as_slice(), q.as_slice()], 1000)?;
    let rows = run(&device, softmax::kernel(), &[("M", m as i64), ("N", n as i64)], &[x.as_slice()], m * n)?;
    let dims = [("M", m as i64), ("N", n as i64), ("K", k as i64)];
    let product = run(&device, matmul::kernel(), &dims, &[a.as_slice(), b.as_slice()], m * n)?;

    for (name, found, expected) in [
        ("add", sum, add::reference(&p, &q)?.as_slice().to_vec()),
        ("softmax", rows, softmax::reference(&x)?.as_slice().to_vec()),
        ("matmul", product, matmul::reference(&a, &b)?.as_slice().to_vec()),
    ] {
        let difference = difference(&found, &expected);
        println!("{name:>8}: largest difference to the definition {difference:.1e}");
        assert!(difference < 1e-4, "{name} is wrong");
    }
    Ok(())
}

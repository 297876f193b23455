//! The cost of the first call of a shape.
//!
//! `cargo bench --bench first_calls` prints one JSON line for each kernel of the sentence-embedding example, and for attention over
//! keys and values of earlier steps: the first call of all in milliseconds, and the slowest first call of a further length of the
//! dimension that grows, 1 to 40. Words select kernels. Nothing is tuned, and every kernel begins without any version.

#[allow(dead_code)]
#[path = "../examples/sentence_embedding/kernels.rs"]
mod embedding;

use std::process::ExitCode;
use std::time::Instant;

use tilewright::bench::{Options, run_when_asked};
use tilewright::core::device::BufferArgument;
use tilewright::core::expr::Constant;
use tilewright::core::program::Access;
use tilewright::core::tensor::AnyTensor;
use tilewright::prelude::*;
use tilewright::{Kernel, background};

type Failure = Box<dyn std::error::Error>;

/// The most that the first call of all may cost, in milliseconds.
const COLD_TARGET: f64 = 50.0;
/// The most that the first call of a further length may cost, in milliseconds.
const FURTHER_TARGET: f64 = 5.0;

/// Attention of new tokens to all keys and values so far.
#[tensor_kernel]
fn attention(
    query: &Tensor<f32, A, Q, D>,
    key: &Tensor<f32, A, L, D>,
    value: &Tensor<f32, A, L, D>,
    scale: f32,
) -> Tensor<f32, A, Q, D> {
    let mut scores: Tensor<f32, A, Q, L> = Tensor::zeros();
    for a in 0..A {
        for q in 0..Q {
            for l in 0..L {
                for d in 0..D {
                    scores[[a, q, l]] += query[[a, q, d]] * key[[a, l, d]];
                }
            }
        }
    }
    let mut weights: Tensor<f32, A, Q, L> = Tensor::zeros();
    for a in 0..A {
        for q in 0..Q {
            let mut largest = f32::NEG_INFINITY;
            for l in 0..L {
                largest = largest.max(scores[[a, q, l]] * scale);
            }
            let mut sum = 0.0;
            for l in 0..L {
                let weight = (scores[[a, q, l]] * scale - largest).exp();
                weights[[a, q, l]] = weight;
                sum += weight;
            }
            for l in 0..L {
                weights[[a, q, l]] = weights[[a, q, l]] / sum;
            }
        }
    }
    let mut context = Tensor::zeros();
    for a in 0..A {
        for q in 0..Q {
            for d in 0..D {
                for l in 0..L {
                    context[[a, q, d]] += weights[[a, q, l]] * value[[a, l, d]];
                }
            }
        }
    }
    context
}

/// A kernel, its fixed dimensions, and the dimension that grows.
struct Case {
    kernel: &'static Kernel,
    fixed: Vec<(&'static str, i64)>,
    grows: &'static str,
}

fn cases() -> Vec<Case> {
    let case = |kernel, fixed: &[(&'static str, i64)], grows| Case { kernel, fixed: fixed.to_vec(), grows };
    vec![
        case(attention::kernel(), &[("A", 12), ("Q", 1), ("D", 32)], "L"),
        case(embedding::embed::kernel(), &[("B", 1), ("V", 1000), ("H", 384), ("P", 512), ("T", 2)], "S"),
        case(embedding::add_layer_norm::kernel(), &[("H", 384)], "R"),
        case(embedding::layer_norm::kernel(), &[("H", 384)], "R"),
        case(embedding::linear::kernel(), &[("K", 384), ("N", 384)], "R"),
        case(embedding::linear_gelu::kernel(), &[("K", 384), ("N", 1536)], "R"),
        case(embedding::attention_weights::kernel(), &[("B", 1), ("A", 12), ("D", 32)], "S"),
        case(embedding::attend::kernel(), &[("B", 1), ("A", 12), ("D", 32)], "S"),
        case(embedding::mean_pool::kernel(), &[("B", 1), ("H", 384)], "S"),
    ]
}

fn main() -> ExitCode {
    run_when_asked(|options: &Options| {
        for case in cases().iter().filter(|case| options.selects(case.kernel.name())) {
            measure(case)?;
        }
        Ok(())
    })
}

/// First calls of a kernel that is new to the process, in the order of lengths.
fn measure(case: &Case) -> Result<(), Failure> {
    let kernel = Kernel::from_program(case.kernel.program()?.clone())?;
    let mut milliseconds = Vec::new();
    for length in 1..=40 {
        milliseconds.push(first_call(&kernel, case, length)?);
    }
    let further = milliseconds[1..].iter().copied().fold(0.0, f64::max);
    let sum: f64 = milliseconds.iter().sum();
    let start = Instant::now();
    background::finish();
    println!(
        r#"{{"kernel":"{}","cold_ms":{:.2},"cold_target":{COLD_TARGET},"further_ms":{further:.2},"further_target":{FURTHER_TARGET},"sum_ms":{sum:.1},"background_ms":{:.0}}}"#,
        kernel.name(),
        milliseconds[0],
        start.elapsed().as_secs_f64() * 1e3
    );
    Ok(())
}

/// The time of a call with zeros, in milliseconds.
fn first_call(kernel: &Kernel, case: &Case, length: i64) -> Result<f64, Failure> {
    let named: Vec<_> = case.fixed.iter().copied().chain([(case.grows, length)]).collect();
    let dims = kernel.dims_by_name(&named)?;
    let program = kernel.program_for(&dims)?;
    let mut tensors = Vec::new();
    for (id, _) in program.buffer_params() {
        let buffer = program.buffer(id);
        let extents = buffer.shape.iter().map(|extent| extent.as_constant().unwrap_or(0) as usize);
        tensors.push(AnyTensor::zeros(buffer.dtype, &extents.collect::<Vec<_>>())?);
    }
    let accesses = program.buffer_params().map(|(_, access)| access);
    let mut buffers: Vec<BufferArgument<'_>> = tensors
        .iter_mut()
        .zip(accesses)
        .map(|(tensor, access)| match access {
            Access::Input => BufferArgument::Read(tensor.bytes()),
            Access::Constant => BufferArgument::Identified(tensor.identified_bytes()),
            Access::Output | Access::InOut => BufferArgument::Write(tensor.bytes_mut()),
        })
        .collect();
    let scalars: Vec<Constant> = program.scalar_params().map(|_| Constant::float(1.0)).collect();
    let start = Instant::now();
    kernel.run(&dims, &scalars, &mut buffers)?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

//! Tests of the interpreter, on programs in their text form.

mod checks;
mod functions;
mod operators;
mod statements;
mod threads;

use crate::dtype::DType;
use crate::expr::Constant;
use crate::interp::{InterpError, Interpreter, Options};
use crate::program::Program;
use crate::tensor::AnyTensor;

fn parse(text: &str) -> Program {
    text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Runs a program given as text.
fn run(text: &str, dims: &[i64], scalars: &[Constant], buffers: &mut [AnyTensor]) -> Result<(), InterpError> {
    crate::interp::run(&parse(text), dims, scalars, buffers)
}

/// Runs a program with its parallel loops in an order drawn with a seed.
fn run_in_order(text: &str, seed: u64, dims: &[i64], buffers: &mut [AnyTensor]) -> Result<(), InterpError> {
    let options = Options { parallel_order_seed: Some(seed) };
    Interpreter::new(&parse(text))?.run(options, dims, &[], buffers)
}

fn tensor(dtype: DType, values: &[f64]) -> AnyTensor {
    AnyTensor::from_f64s(dtype, values, &[values.len()]).unwrap()
}

fn zeros(dtype: DType, shape: &[usize]) -> AnyTensor {
    AnyTensor::zeros(dtype, shape).unwrap()
}

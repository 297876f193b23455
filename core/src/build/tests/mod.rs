//! Definitions written by hand, as generated code writes them.

mod arg_reductions;
mod differential;
mod executor;
mod kernels;
mod recurrences;
mod refusals;
mod structure;
mod values;

use super::{KernelBuilder, SourceLocation, TensorHandle, UpdateOp, Value};
use crate::dtype::DType;
use crate::expr::BinaryOp;
use crate::program::Program;
use crate::verify::{Level, verify};

/// A place on a line of an imaginary file.
fn at(line: u32) -> SourceLocation {
    SourceLocation::new("kernel.rs", line, 1)
}

fn int(value: i64) -> Value {
    Value::int(value)
}

fn add(a: &Value, b: &Value) -> Value {
    a.binary(BinaryOp::Add, b.clone())
}

fn sub(a: &Value, b: &Value) -> Value {
    a.binary(BinaryOp::Sub, b.clone())
}

fn mul(a: &Value, b: &Value) -> Value {
    a.binary(BinaryOp::Mul, b.clone())
}

fn div(a: &Value, b: &Value) -> Value {
    a.binary(BinaryOp::Div, b.clone())
}

fn compare(a: &Value, op: BinaryOp, b: &Value) -> Value {
    a.binary(op, b.clone())
}

fn both(a: &Value, b: &Value) -> Value {
    a.binary(BinaryOp::And, b.clone())
}

/// `for name in 0..end`
fn each(b: &mut KernelBuilder, name: &str, end: &Value, body: impl FnOnce(&mut KernelBuilder, Value)) {
    b.for_loop(name, int(0), end.clone(), 1, at(0), body);
}

fn zeros(b: &mut KernelBuilder, name: &str, shape: &[&Value]) -> TensorHandle {
    let shape: Vec<Value> = shape.iter().map(|extent| (*extent).clone()).collect();
    b.tensor(name, DType::F32, &shape, Some(Value::float(0.0)), at(0))
}

fn input(b: &mut KernelBuilder, name: &str, shape: &[&Value]) -> TensorHandle {
    let shape: Vec<Value> = shape.iter().map(|extent| (*extent).clone()).collect();
    b.input(name, DType::F32, &shape)
}

/// `tensor[[indices]] op= value` on a line.
fn store(
    b: &mut KernelBuilder,
    tensor: TensorHandle,
    indices: &[&Value],
    op: UpdateOp,
    value: Value,
    line: u32,
) {
    let indices: Vec<Value> = indices.iter().map(|index| (*index).clone()).collect();
    b.store(tensor, &indices, op, value, at(line));
}

fn load(b: &KernelBuilder, tensor: TensorHandle, indices: &[&Value]) -> Value {
    let indices: Vec<Value> = indices.iter().map(|index| (*index).clone()).collect();
    b.load(tensor, &indices)
}

/// The program, which must be well-formed.
#[track_caller]
fn build(b: KernelBuilder) -> Program {
    let program = b.finish().unwrap_or_else(|errors| panic!("{errors}"));
    if let Err(errors) = verify(&program, Level::Blocks) {
        panic!("{}\n{program}", errors.render(&program));
    }
    program
}

/// The errors, as printed.
#[track_caller]
fn refuse(b: KernelBuilder) -> String {
    match b.finish() {
        Ok(program) => panic!("expected an error, built\n{program}"),
        Err(errors) => errors.to_string(),
    }
}

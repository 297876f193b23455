//! Runs a definition as ordinary Rust and as a program, and compares bits.

use tilewright::definition::{ParameterKind, ParameterSpec};
use tilewright::kernel::Kernel;
use tilewright_core::device::BufferArgument;
use tilewright_core::dtype::DType;
use tilewright_core::expr::Constant;
use tilewright_core::interp;
use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::tensor::AnyTensor;
use tilewright_core::verify::{Level, verify};

/// How to call a kernel.
pub(crate) struct Call<'a> {
    /// A value for each dimension, then for each `usize` argument.
    pub(crate) dims: &'a [i64],
    /// A value for each run-time scalar.
    pub(crate) scalars: &'a [Constant],
    /// Bounds for integer tensors that are indices.
    pub(crate) bounds: &'a [(&'a str, u64)],
}

/// Asserts that the reference, the program that is built and what it is lowered to give the same bits in every
/// tensor.
pub(crate) fn agree(kernel: &'static Kernel, call: &Call<'_>) {
    let definition = kernel.definition().expect("it is written in Rust");
    let name = definition.name;
    let start: Vec<AnyTensor> = definition
        .tensors()
        .enumerate()
        .map(|(position, parameter)| argument(kernel, parameter, call, position as u64))
        .collect();
    let mut expected = start.clone();
    let mut buffers: Vec<BufferArgument<'_>> = expected.iter_mut().map(BufferArgument::from).collect();
    (definition.reference)(call.dims, call.scalars, &mut buffers)
        .unwrap_or_else(|error| panic!("reference of `{name}` with {:?}: {error}", call.dims));

    let program = kernel.program().unwrap_or_else(|errors| panic!("{errors}"));
    verify(program, Level::Blocks).unwrap_or_else(|errors| panic!("{}", errors.render(program)));
    let options = LowerOptions { contract: false, ..LowerOptions::default() };
    let lowered = lower(program, &options).unwrap_or_else(|error| panic!("`{name}`: {error}\n{program}"));
    for program in [program, &lowered] {
        let mut found = start.clone();
        interp::run(program, call.dims, call.scalars, &mut found)
            .unwrap_or_else(|error| panic!("program of `{name}` with {:?}: {error}\n{program}", call.dims));
        for ((parameter, expected), found) in definition.tensors().zip(&expected).zip(&found) {
            assert!(
                expected.bytes() == found.bytes(),
                "`{}` of `{name}` with {:?}: {:?}\nreference: {expected}\nprogram: {found}\n{program}",
                parameter.name,
                call.dims,
                found.max_error(expected),
            );
        }
    }
}

fn argument(kernel: &Kernel, parameter: &ParameterSpec, call: &Call<'_>, seed: u64) -> AnyTensor {
    let definition = kernel.definition().expect("it is written in Rust");
    let shape = definition.shape(parameter, call.dims).unwrap_or_else(|error| panic!("{error}"));
    let bound = call.bounds.iter().find(|(name, _)| *name == parameter.name);
    let tensor = match (parameter.kind, bound) {
        (ParameterKind::Output, _) => AnyTensor::zeros(parameter.dtype, &shape),
        (_, Some((_, bound))) => AnyTensor::random_indices(parameter.dtype, &shape, *bound, seed),
        _ => AnyTensor::random(parameter.dtype, &shape, seed),
    };
    tensor.unwrap_or_else(|error| panic!("`{}`: {error}", parameter.name))
}

/// A scalar argument.
pub(crate) fn float(dtype: DType, value: f64) -> Constant {
    assert!(dtype.is_float(), "{dtype} is no float");
    Constant::float(if dtype == DType::F32 { f64::from(value as f32) } else { value })
}

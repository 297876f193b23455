//! Tensor programs, by the interpreter of programs.

use tilewright_core::ids::VarId;
use tilewright_core::interp;
use tilewright_core::program::Program;
use tilewright_core::tensor::AnyTensor;

use crate::operator::{Fault, Value};
use crate::tensor::HostTensor;

/// Values for the dimensions of a program, in order, from the shapes of its first tensors; `None` when they decide one of them not, or
/// contradict each other.
pub fn dims_of(program: &Program, shapes: &[&[usize]]) -> Option<Vec<i64>> {
    let mut sizes: Vec<(VarId, i64)> = Vec::new();
    let buffers = || program.buffer_params().map(|(id, _)| program.buffer(id)).zip(shapes);
    for (buffer, shape) in buffers() {
        if buffer.shape.len() != shape.len() {
            return None;
        }
        for (extent, &size) in buffer.shape.iter().zip(*shape) {
            if let Some(var) = extent.as_var()
                && !sizes.iter().any(|(known, _)| *known == var)
            {
                sizes.push((var, i64::try_from(size).ok()?));
            }
        }
    }
    let value = |var: VarId| sizes.iter().find(|(known, _)| *known == var).map(|(_, size)| *size);
    for (buffer, shape) in buffers() {
        let fits = |(extent, &size): (&tilewright_core::index::Index, &usize)| {
            extent.evaluate(&value).is_some_and(|extent| usize::try_from(extent) == Ok(size))
        };
        if !buffer.shape.iter().zip(*shape).all(fits) {
            return None;
        }
    }
    program.dims().map(|(var, _)| value(var)).collect()
}

/// The shapes of the results of a program, which are its tensors from the position `inputs` on.
pub fn result_shapes(program: &Program, dims: &[i64], inputs: usize) -> Option<Vec<Vec<usize>>> {
    let sizes: Vec<_> = program.dims().map(|(var, _)| var).zip(dims.iter().copied()).collect();
    let value = |var: VarId| sizes.iter().find(|(known, _)| *known == var).map(|(_, size)| *size);
    let buffers = program.buffer_params().skip(inputs).map(|(id, _)| program.buffer(id));
    let shape = |extent: &tilewright_core::index::Index| usize::try_from(extent.evaluate(&value)?).ok();
    buffers.map(|buffer| buffer.shape.iter().map(shape).collect()).collect()
}

/// Executes a program.
pub(super) fn run(program: &Program, inputs: &[Value]) -> Result<Vec<Value>, Fault> {
    let misfit = || Fault(format!("the arguments do not fit the program `{}`", program.name));
    let tensors: Vec<&HostTensor> =
        inputs.iter().map(|input| input.as_tensor().ok_or_else(misfit)).collect::<Result<_, _>>()?;
    let shapes: Vec<&[usize]> = tensors.iter().map(|tensor| tensor.shape()).collect();
    let dims = dims_of(program, &shapes).ok_or_else(misfit)?;
    let results = result_shapes(program, &dims, inputs.len()).ok_or_else(misfit)?;
    let mut memory: Vec<AnyTensor> =
        tensors.iter().map(|tensor| tensor.to_kernel().ok_or_else(misfit)).collect::<Result<_, _>>()?;
    let outputs = program.buffer_params().skip(inputs.len()).map(|(id, _)| program.buffer(id).dtype);
    for (dtype, shape) in outputs.zip(&results) {
        memory.push(AnyTensor::zeros(dtype, shape).map_err(|error| Fault(error.to_string()))?);
    }
    interp::run(program, &dims, &[], &mut memory).map_err(|error| Fault(error.to_string()))?;
    let results = memory[inputs.len()..].iter().map(HostTensor::from_kernel);
    results.map(|result| result.map(Value::Tensor).ok_or_else(misfit)).collect()
}

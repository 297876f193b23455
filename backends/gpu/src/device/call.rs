//! The checks of a call's arguments, and parameters of kernels as bytes.

use half::{bf16, f16};
use smallvec::SmallVec;
use tilewright_core::device::{Arguments, BufferArgument, CallError};
use tilewright_core::dtype::DType;
use tilewright_core::expr::Constant;
use tilewright_core::ids::VarId;
use tilewright_core::index::Index;
use tilewright_core::program::Program;

/// The bytes of a parameter: an address, a dimension, or an element.
pub(super) type Parameter = SmallVec<[u8; 8]>;

/// The parameters of a program.
pub(super) struct Signature {
    dims: Vec<(VarId, String)>,
    scalars: Vec<DType>,
    tensors: Vec<Tensor>,
}

/// Facts about a tensor parameter.
struct Tensor {
    name: String,
    element_bytes: usize,
    shape: Vec<Index>,
    is_written: bool,
}

impl Signature {
    /// The parameters of a program.
    pub(super) fn of(program: &Program) -> Self {
        let tensors = program.buffer_params().map(|(id, access)| {
            let buffer = program.buffer(id);
            Tensor {
                name: buffer.name.to_string(),
                element_bytes: buffer.dtype.bytes(),
                shape: buffer.shape.clone(),
                is_written: access.is_written(),
            }
        });
        Signature {
            dims: program.dims().map(|(var, name)| (var, name.to_string())).collect(),
            scalars: program.scalar_params().map(|(_, dtype)| dtype).collect(),
            tensors: tensors.collect(),
        }
    }

    /// Checks numbers, dimensions, sizes, and whether what is written may be.
    ///
    /// # Errors
    /// [`CallError`], which names the argument.
    pub(super) fn check(&self, arguments: &Arguments<'_, '_>) -> Result<(), CallError> {
        let count = |sort, expected, found| {
            if expected == found { Ok(()) } else { Err(CallError::Count { sort, expected, found }) }
        };
        count("dimensions", self.dims.len(), arguments.dims.len())?;
        count("scalars", self.scalars.len(), arguments.scalars.len())?;
        count("tensors", self.tensors.len(), arguments.buffers.len())?;
        for ((_, name), value) in self.dims.iter().zip(arguments.dims) {
            if *value < 0 {
                return Err(CallError::Dimension { name: name.clone(), value: *value });
            }
        }
        for (tensor, argument) in self.tensors.iter().zip(arguments.buffers.iter()) {
            self.check_tensor(tensor, argument, arguments.dims)?;
        }
        Ok(())
    }

    fn check_tensor(
        &self,
        tensor: &Tensor,
        argument: &BufferArgument<'_>,
        dims: &[i64],
    ) -> Result<(), CallError> {
        let expected = self.bytes(tensor, dims)?;
        let found = argument.len() as u64;
        if expected != found {
            return Err(CallError::Size { name: tensor.name.clone(), expected, found });
        }
        if tensor.is_written && !argument.is_writable() {
            return Err(tensor.problem("is written by the kernel, but was passed for reading only"));
        }
        Ok(())
    }

    /// The size of a tensor in bytes.
    fn bytes(&self, tensor: &Tensor, dims: &[i64]) -> Result<u64, CallError> {
        let error = |value| CallError::Dimension { name: tensor.name.clone(), value };
        let value_of = |var| {
            let position = self.dims.iter().position(|(dim, _)| *dim == var)?;
            dims.get(position).copied()
        };
        let product = tensor.shape.iter().try_fold(tensor.element_bytes as u64, |product, extent| {
            let extent = extent.evaluate(&value_of).ok_or_else(|| error(i64::MAX))?;
            let size = u64::try_from(extent).map_err(|_| error(extent))?;
            product.checked_mul(size).ok_or_else(|| error(i64::MAX))
        })?;
        if product <= i64::MAX as u64 { Ok(product) } else { Err(error(i64::MAX)) }
    }

    /// An error about a tensor.
    pub(super) fn problem(&self, number: usize, problem: &str) -> CallError {
        self.tensors[number].problem(problem)
    }

    /// Whether the program writes a tensor.
    pub(super) fn is_written(&self, number: usize) -> bool {
        self.tensors[number].is_written
    }

    /// A scalar as the element that a kernel takes.
    pub(super) fn scalar(&self, number: usize, value: Constant) -> Parameter {
        element(self.scalars[number], value)
    }
}

impl Tensor {
    fn problem(&self, problem: &str) -> CallError {
        CallError::Tensor { name: self.name.clone(), problem: problem.to_owned() }
    }
}

/// A constant as an element of a type.
fn element(dtype: DType, constant: Constant) -> Parameter {
    let float = constant.as_f64();
    match dtype {
        DType::Bool => Parameter::from_slice(&[u8::from(float != 0.0)]),
        DType::F16 => Parameter::from_slice(&f16::from_f64(float).to_le_bytes()),
        DType::BF16 => Parameter::from_slice(&bf16::from_f64(float).to_le_bytes()),
        DType::F32 => Parameter::from_slice(&(float as f32).to_le_bytes()),
        DType::F64 => Parameter::from_slice(&float.to_le_bytes()),
        _ => {
            let integer = match constant {
                Constant::Int(value) => value,
                Constant::Float(_) => float as i64,
            };
            Parameter::from_slice(&dtype.wrap(integer).to_le_bytes()[..dtype.bytes()])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_elements_of_their_types() {
        for (dtype, constant, bytes) in [
            (DType::I64, Constant::Int(i64::MAX), &[255, 255, 255, 255, 255, 255, 255, 127][..]),
            (DType::I8, Constant::Int(-2), &[254]),
            (DType::Bool, Constant::Int(1), &[1]),
            (DType::F32, Constant::Float(1.0_f64.to_bits()), &[0, 0, 128, 63]),
            (DType::BF16, Constant::Float(1.0_f64.to_bits()), &[128, 63]),
            (DType::F16, Constant::Float(1.0_f64.to_bits()), &[0, 60]),
        ] {
            assert_eq!(element(dtype, constant).as_slice(), bytes, "{dtype:?}");
        }
    }
}

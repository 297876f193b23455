//! From typed tensors to the arguments of a kernel, and back for the dynamic reference.

use tilewright_core::device::{BufferArgument, CallError};
use tilewright_core::expr::Constant;
use tilewright_core::tensor::{BytesMut, Element, Tensor, TensorView, TensorViewMut};
#[cfg(feature = "jit")]
use tilewright_cpu::pages::prefer_huge_pages;

use super::Elements;
use crate::Error;
use crate::definition::{KernelDefinition, ParameterSpec};
use crate::devices::{DeviceHandle, DeviceTensor};
use crate::kernel::Kernel;

/// Memory stays as the system gives it where no kernel is compiled for the CPU.
#[cfg(not(feature = "jit"))]
fn prefer_huge_pages(_: *const u8, _: usize) {}

/// The definition of a kernel that generated code defines.
#[inline]
pub fn definition(kernel: &Kernel) -> &'static KernelDefinition {
    kernel.definition().expect("generated code names kernels that it defines")
}

/// A result, to be written.
///
/// # Errors
/// When its shape cannot be computed, or does not fit into memory.
pub fn allocate<T: Element, const RANK: usize>(
    definition: &KernelDefinition,
    position: usize,
    dims: &[i64],
) -> Result<Tensor<T, RANK>, Error> {
    let parameter = definition.outputs().nth(position).expect("generated code counts its results");
    Ok(Tensor::for_result(extents(definition, parameter, dims)?, prefer_huge_pages)?)
}

/// A result in the memory of a device, to be written.
///
/// # Errors
/// As [`allocate`], and when the memory of the device is used up.
pub fn allocate_on<T: Element, const RANK: usize>(
    device: &DeviceHandle,
    definition: &KernelDefinition,
    position: usize,
    dims: &[i64],
) -> Result<DeviceTensor<T, RANK>, Error> {
    let parameter = definition.outputs().nth(position).expect("generated code counts its results");
    device.for_result(extents(definition, parameter, dims)?)
}

fn extents<const RANK: usize>(
    definition: &KernelDefinition,
    parameter: &ParameterSpec,
    dims: &[i64],
) -> Result<[usize; RANK], Error> {
    let mut extents = [0; RANK];
    for (axis, extent) in extents.iter_mut().enumerate() {
        *extent = definition.extent(parameter, axis, dims)?;
    }
    Ok(extents)
}

/// The bytes of an argument that is read, and its strides where it is not dense.
#[inline]
pub fn read_bytes<'a, T: Element, const RANK: usize>(
    view: &'a TensorView<'_, T, RANK>,
) -> (BufferArgument<'a>, Option<&'a [usize]>) {
    let (elements, strides) = view.memory();
    (BufferArgument::from(elements), strides)
}

/// The bytes of an argument that stays the same between calls with the same tensor, and its strides where it is not dense.
#[inline]
pub fn constant_bytes<'a, T: Element, const RANK: usize>(
    view: &'a TensorView<'_, T, RANK>,
) -> (BufferArgument<'a>, Option<&'a [usize]>) {
    match view.identified_bytes() {
        Some(identified) => (BufferArgument::Identified(identified), None),
        None => read_bytes(view),
    }
}

/// The bytes of an argument or a result that is written, and its strides where it is not dense.
#[inline]
pub fn write_bytes<'a, T: Element, const RANK: usize>(
    view: &'a mut TensorViewMut<'_, T, RANK>,
) -> (BytesMut<'a>, Option<[usize; RANK]>) {
    let strides = if view.is_contiguous() { None } else { Some(view.strides()) };
    (T::as_bytes_mut(view.memory_mut()), strides)
}

/// A scalar of the call.
pub fn scalar_constant<T: Element>(value: T) -> Constant {
    value.to_constant()
}

/// The scalar at a position.
///
/// # Errors
/// [`CallError::Count`] when there are too few.
pub fn scalar<T: Element>(scalars: &[Constant], position: usize) -> Result<T, Error> {
    match scalars.get(position) {
        Some(constant) => Ok(T::from_constant(*constant)),
        None => {
            Err(CallError::Count { sort: "scalars", expected: position + 1, found: scalars.len() }.into())
        }
    }
}

/// Untyped tensors, taken one after the other as what the definition says they are.
#[derive(Debug)]
pub struct Buffers<'a, 'data> {
    definition: &'static KernelDefinition,
    dims: &'a [i64],
    buffers: std::slice::IterMut<'a, BufferArgument<'data>>,
    taken: usize,
}

impl<'a, 'data> Buffers<'a, 'data> {
    /// The tensors of a call of the reference.
    ///
    /// # Errors
    /// [`CallError::Count`] when there are too many or too few tensors or dimensions.
    pub fn new(
        definition: &'static KernelDefinition,
        dims: &'a [i64],
        buffers: &'a mut [BufferArgument<'data>],
    ) -> Result<Self, Error> {
        let counts = [
            ("tensors", definition.tensors().count(), buffers.len()),
            ("dimensions", definition.dims.len(), dims.len()),
        ];
        for (sort, expected, found) in counts {
            if expected != found {
                return Err(CallError::Count { sort, expected, found }.into());
            }
        }
        Ok(Buffers { definition, dims, buffers: buffers.iter_mut(), taken: 0 })
    }

    /// The next tensor, to be read.
    ///
    /// # Errors
    /// When its size does not fit its shape.
    pub fn read<T: Element, const RANK: usize>(&mut self) -> Result<Elements<&'a [T], RANK>, Error> {
        let (parameter, shape, buffer) = self.next()?;
        let found = buffer.len();
        let Some(bytes) = buffer.host_bytes() else { return Err(not_of_host(parameter)) };
        match T::from_bytes(bytes) {
            Ok(elements) if elements.len() == shape.iter().product::<usize>() => {
                Ok(Elements::new(parameter.name, elements, shape))
            }
            _ => Err(size_error::<T>(parameter, &shape, found)),
        }
    }

    /// The next tensor, to be written.
    ///
    /// # Errors
    /// When its size does not fit its shape, or it was passed for reading only.
    pub fn write<T: Element, const RANK: usize>(&mut self) -> Result<Elements<&'a mut [T], RANK>, Error> {
        let (parameter, shape, buffer) = self.next()?;
        if let BufferArgument::DeviceRead(_) | BufferArgument::DeviceWrite(_) = buffer {
            return Err(not_of_host(parameter));
        }
        let BufferArgument::Write(bytes) = buffer else {
            let (name, problem) =
                (parameter.name.to_owned(), "is written but was passed for reading".to_owned());
            return Err(CallError::Tensor { name, problem }.into());
        };
        let found = bytes.len();
        match T::from_bytes_mut(bytes) {
            Ok(elements) if elements.len() == shape.iter().product::<usize>() => {
                Ok(Elements::new(parameter.name, elements, shape))
            }
            _ => Err(size_error::<T>(parameter, &shape, found)),
        }
    }

    fn next<const RANK: usize>(
        &mut self,
    ) -> Result<(&'static ParameterSpec, [usize; RANK], &'a mut BufferArgument<'data>), Error> {
        let parameter = self.definition.tensors().nth(self.taken).expect("generated code counts its tensors");
        let buffer = self.buffers.next().expect("the number of tensors was checked");
        self.taken += 1;
        Ok((parameter, extents(self.definition, parameter, self.dims)?, buffer))
    }
}

#[cold]
fn not_of_host(parameter: &ParameterSpec) -> Error {
    let problem = "is in the memory of a device: a reference runs on the host, download it first".to_owned();
    CallError::Tensor { name: parameter.name.to_owned(), problem }.into()
}

fn size_error<T: Element>(parameter: &ParameterSpec, shape: &[usize], found: usize) -> Error {
    let elements = shape.iter().try_fold(1u64, |product, &extent| product.checked_mul(extent as u64));
    let expected =
        elements.and_then(|elements| elements.checked_mul(size_of::<T>() as u64)).unwrap_or(u64::MAX);
    CallError::Size { name: parameter.name.to_owned(), expected, found: found as u64 }.into()
}

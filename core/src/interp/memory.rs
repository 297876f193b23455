//! The elements of tensors and intermediates during an execution.

use crate::dtype::DType;
use crate::interp::InterpError;
use crate::interp::code::{Access, Code, Storage};
use crate::interp::operators::{self, Read, Write};
use crate::program::Access as ParamAccess;
use crate::strides::lie_apart;
use crate::tensor::AnyTensor;

/// One buffer's elements.
pub(super) struct Memory<'a> {
    bytes: Bytes<'a>,
    read: Read,
    write: Write,
    pub(super) shape: Vec<i64>,
    /// The distance of neighbours along each dimension; `None` when the elements are dense and row-major.
    strides: Option<Vec<i64>>,
    /// Which elements have been written; `None` when all are defined from the start.
    defined: Option<Vec<bool>>,
}

enum Bytes<'a> {
    Argument(&'a mut [u8]),
    Intermediate(AnyTensor),
}

impl<'a> Memory<'a> {
    /// Assigns memory to each buffer of the code: an argument's bytes, or bytes of its own.
    pub(super) fn for_all(
        code: &Code,
        shapes: Vec<Vec<i64>>,
        strides: Vec<Option<Vec<i64>>>,
        buffers: &'a mut [AnyTensor],
    ) -> Result<Vec<Memory<'a>>, InterpError> {
        let mut arguments: Vec<Option<&'a mut AnyTensor>> = buffers.iter_mut().map(Some).collect();
        let with_shapes = code.memories.iter().zip(shapes.into_iter().zip(strides));
        with_shapes
            .map(|(storage, (shape, strides))| match storage.param {
                Some((position, access)) => {
                    let argument = arguments[position].take().expect("each parameter is declared once");
                    match strides {
                        Some(strides) => Self::strided(storage, access, shape, strides, argument),
                        None => Self::argument(storage, access, shape, argument),
                    }
                }
                None => Self::intermediate(storage, shape),
            })
            .collect()
    }

    fn argument(
        storage: &Storage,
        access: ParamAccess,
        shape: Vec<i64>,
        argument: &'a mut AnyTensor,
    ) -> Result<Self, InterpError> {
        let found = argument.shape().iter().map(|&extent| extent as i64);
        let is_of_shape = found.clone().eq(shape.iter().copied()) || shape == [found.product()];
        // A lowered program takes elements of storage types as bytes.
        let is_bytes = argument.dtype().is_storage_only()
            && storage.dtype == DType::U8
            && shape == [argument.bytes().len() as i64];
        let fits = is_bytes || (is_of_shape && argument.dtype() == storage.dtype);
        if !fits {
            return Err(InterpError::Argument {
                name: storage.name.to_string(),
                expected: format!("{}{shape:?}", storage.dtype),
                found: format!("{}{:?}", argument.dtype(), argument.shape()),
            });
        }
        let count = if is_bytes { argument.bytes().len() } else { argument.len() };
        let defined = (access == ParamAccess::Output).then(|| vec![false; count]);
        let (read, write) = operators::access(storage.dtype);
        Ok(Memory {
            bytes: Bytes::Argument(argument.bytes_mut()),
            read,
            write,
            shape,
            strides: None,
            defined,
        })
    }

    /// An argument whose elements lie by strides. It is as long as the last element of the shape is far.
    fn strided(
        storage: &Storage,
        access: ParamAccess,
        shape: Vec<i64>,
        strides: Vec<i64>,
        argument: &'a mut AnyTensor,
    ) -> Result<Self, InterpError> {
        let farthest = shape
            .iter()
            .zip(&strides)
            .try_fold(0i64, |sum, (&extent, &stride)| sum.checked_add((extent - 1).checked_mul(stride)?));
        let len = if shape.contains(&0) { Some(0) } else { farthest.and_then(|last| last.checked_add(1)) };
        let is_sound = !access.is_written() || lie_apart(&shape, &strides);
        if argument.dtype() != storage.dtype || len != Some(argument.len() as i64) || !is_sound {
            let apart = if is_sound { "" } else { " that keep its elements apart" };
            return Err(InterpError::Argument {
                name: storage.name.to_string(),
                expected: format!("{}{shape:?} with strides {strides:?}{apart}", storage.dtype),
                found: format!("{}{:?}", argument.dtype(), argument.shape()),
            });
        }
        let (read, write) = operators::access(storage.dtype);
        let defined = (access == ParamAccess::Output).then(|| {
            // The memory between the elements of a result stays as it is.
            let mut defined = vec![true; argument.len()];
            for_each_place(&shape, &strides, &mut |_, position| defined[position] = false);
            defined
        });
        let (bytes, strides) = (Bytes::Argument(argument.bytes_mut()), Some(strides));
        Ok(Memory { bytes, read, write, shape, strides, defined })
    }

    fn intermediate(storage: &Storage, shape: Vec<i64>) -> Result<Self, InterpError> {
        let extents: Vec<usize> = shape.iter().map(|&extent| extent as usize).collect();
        let elements = AnyTensor::zeros(storage.dtype, &extents)
            .map_err(|error| InterpError::Memory { name: storage.name.to_string(), error })?;
        let (read, write) = operators::access(storage.dtype);
        let defined = Some(vec![false; elements.len()]);
        Ok(Memory { bytes: Bytes::Intermediate(elements), read, write, shape, strides: None, defined })
    }

    /// Memory of the same shape whose elements are all undefined.
    pub(super) fn fresh(&self, name: &str) -> Result<Self, InterpError> {
        let extents: Vec<usize> = self.shape.iter().map(|&extent| extent as usize).collect();
        let elements = match &self.bytes {
            Bytes::Intermediate(elements) => AnyTensor::zeros(elements.dtype(), &extents)
                .map_err(|error| InterpError::Memory { name: name.to_owned(), error })?,
            Bytes::Argument(_) => unreachable!("an argument belongs to no thread alone"),
        };
        let defined = Some(vec![false; elements.len()]);
        let (read, write, shape) = (self.read, self.write, self.shape.clone());
        Ok(Memory { bytes: Bytes::Intermediate(elements), read, write, shape, strides: None, defined })
    }

    /// The position of the element that an access names, or `None` outside the shape.
    #[inline]
    pub(super) fn position(&self, access: &Access, registers: &[u64]) -> Option<usize> {
        let mut position = 0u64;
        for (&register, &extent) in access.indices.iter().zip(&self.shape) {
            let index = registers[register as usize];
            if index >= extent as u64 {
                return None;
            }
            position = position * extent as u64 + index;
        }
        if let Some(strides) = &self.strides {
            let products = access.indices.iter().zip(strides);
            position =
                products.map(|(&register, &stride)| registers[register as usize] * stride as u64).sum();
        }
        Some(position as usize)
    }

    /// The bits of an element, or `None` when nothing wrote it.
    #[inline]
    pub(super) fn load(&self, position: usize) -> Option<u64> {
        if self.defined.as_ref().is_some_and(|defined| !defined[position]) {
            return None;
        }
        let bytes = match &self.bytes {
            Bytes::Argument(bytes) => bytes,
            Bytes::Intermediate(elements) => elements.bytes(),
        };
        Some((self.read)(bytes, position))
    }

    /// Writes an element.
    #[inline]
    pub(super) fn store(&mut self, position: usize, slot: u64) {
        if let Some(defined) = &mut self.defined {
            defined[position] = true;
        }
        let bytes = match &mut self.bytes {
            Bytes::Argument(bytes) => bytes,
            Bytes::Intermediate(elements) => elements.bytes_mut(),
        };
        (self.write)(bytes, position, slot);
    }

    /// Makes all elements undefined.
    pub(super) fn forget(&mut self) {
        if let Some(defined) = &mut self.defined {
            defined.fill(false);
        }
    }

    /// The index of the first element that nothing wrote.
    pub(super) fn first_undefined(&self) -> Option<Vec<i64>> {
        let wanted = self.defined.as_ref()?.iter().position(|defined| !defined)?;
        let Some(strides) = &self.strides else { return Some(Self::indices_of(&self.shape, wanted)) };
        let mut found = None;
        for_each_place(&self.shape, strides, &mut |indices, position| {
            if position == wanted {
                found = Some(indices.to_vec());
            }
        });
        found
    }

    /// The index of the element at a position of dense elements.
    pub(super) fn indices_of(shape: &[i64], position: usize) -> Vec<i64> {
        let mut position = position as i64;
        let mut index = vec![0; shape.len()];
        for (index, extent) in index.iter_mut().zip(shape).rev() {
            (*index, position) = (position % extent, position / extent);
        }
        index
    }
}

/// Calls a function with the indices of each element of a shape, and its position by strides.
fn for_each_place(shape: &[i64], strides: &[i64], visit: &mut dyn FnMut(&[i64], usize)) {
    let count: i64 = shape.iter().product();
    for number in 0..count {
        let indices = Memory::indices_of(shape, number as usize);
        let position: i64 = indices.iter().zip(strides).map(|(index, stride)| index * stride).sum();
        visit(&indices, position as usize);
    }
}

//! Host tensors as kernels take them, and back.

use std::sync::Arc;

use tilewright_core::dtype::DType;
use tilewright_core::tensor::{ALIGNMENT, AnyTensor, SharedBytes, StoredBytes};

use crate::tensor::buffer::Aligned;
use crate::tensor::region::Region;
use crate::tensor::{Buffer, Element, ElementType, Elements, HostTensor, Stored, TensorError};

/// Runs one expression with the elements that kernels can take bound to a name; `$otherwise` for others.
macro_rules! with_kernel_elements {
    ($elements:expr, $values:ident => $body:expr, else $otherwise:expr) => {
        match $elements {
            Elements::Bool($values) => $body,
            Elements::I8($values) => $body,
            Elements::I16($values) => $body,
            Elements::I32($values) => $body,
            Elements::I64($values) => $body,
            Elements::U8($values) => $body,
            Elements::U16($values) => $body,
            Elements::U32($values) => $body,
            Elements::U64($values) => $body,
            Elements::F16($values) => $body,
            Elements::BF16($values) => $body,
            Elements::F32($values) => $body,
            Elements::F64($values) => $body,
            _ => $otherwise,
        }
    };
}

/// Elements that tensors share, as bytes. Nobody changes them: a tensor changes only elements that it has alone.
struct Shared<T>(Arc<Buffer<T>>);

impl<T: tilewright_core::tensor::Element> AsRef<[u8]> for Shared<T> {
    fn as_ref(&self) -> &[u8] {
        T::as_bytes(&self.0)
    }
}

impl HostTensor {
    /// A copy in memory that is aligned as kernels like it. `None` for strings and elements of a few bits, with which kernels do not compute.
    pub fn to_kernel(&self) -> Option<AnyTensor> {
        with_kernel_elements!(&self.elements, values => AnyTensor::from_slice(&values[..], &self.shape).ok(), else None)
    }

    /// The same elements as kernels take them, without a copy. `None` as for [`HostTensor::to_kernel`], and for elements that are not aligned
    /// as kernels like them.
    pub fn share(&self) -> Option<SharedBytes> {
        with_kernel_elements!(&self.elements, values => match **values {
            Buffer::Aligned(_) | Buffer::Stored(_) => Some(SharedBytes::new(Arc::new(Shared(Arc::clone(values))))),
            Buffer::Plain(_) => None,
        }, else None)
    }

    /// Where kernels find the elements, if they are in a file alone.
    pub fn absent(&self) -> Option<StoredBytes> {
        with_kernel_elements!(&self.elements, values => match &**values {
            Buffer::Stored(stored) => Some(StoredBytes::new(Arc::new(stored.absent()?.clone()))),
            Buffer::Aligned(_) | Buffer::Plain(_) => None,
        }, else None)
    }

    /// The same tensor, whose elements a file has in the machine's order of bytes. Truth values stay as they are: not every byte is one.
    pub(crate) fn in_file(mut self, region: Region) -> Self {
        fn put<T: tilewright_core::tensor::Element>(values: &mut Arc<Buffer<T>>, region: Region) {
            if T::DTYPE == DType::Bool {
                return;
            }
            if let Some(own) = Arc::get_mut(values)
                && let Buffer::Aligned(elements) = own
            {
                let elements = std::mem::replace(elements, Aligned::new(ALIGNMENT));
                *own = Buffer::Stored(Stored::of(region, elements));
            }
        }
        with_kernel_elements!(&mut self.elements, values => put(values, region), else ());
        self
    }

    /// The same elements, aligned as kernels like them: what is computed once for a graph and read in each of its runs.
    pub(crate) fn aligned(self) -> Self {
        fn copy<T: Element>(shape: &[usize], elements: &Buffer<T>) -> HostTensor {
            let elements = Buffer::aligned(elements.iter().cloned());
            HostTensor { shape: shape.to_vec(), elements: T::wrap(elements) }
        }
        with_kernel_elements!(&self.elements, values => copy(&self.shape, values), else self)
    }

    /// The elements as bytes in the machine's order; `None` for strings and elements of a few bits.
    pub fn bytes(&self) -> Option<&[u8]> {
        fn bytes<T: tilewright_core::tensor::Element>(values: &[T]) -> &[u8] {
            T::as_bytes(values)
        }
        with_kernel_elements!(&self.elements, values => Some(bytes(values)), else None)
    }

    /// A copy of elements that lie in memory as bytes in the machine's order.
    ///
    /// # Errors
    /// When there are not as many as the shape has, or they are strings.
    pub fn from_bytes(element: ElementType, shape: &[usize], bytes: &[u8]) -> Result<Self, TensorError> {
        if let Some(tensor) = aligned(element, shape, bytes) {
            return Ok(tensor);
        }
        let found = bytes.len() / element.dtype().map_or(1, DType::bytes);
        let misfit =
            || TensorError::Length { shape: shape.to_vec(), expected: shape.iter().product(), found };
        let dtype = element.dtype().ok_or_else(misfit)?;
        let mut tensor =
            AnyTensor::zeros(dtype, shape).map_err(|_| TensorError::TooLarge { shape: shape.to_vec() })?;
        if tensor.bytes().len() != bytes.len() {
            return Err(misfit());
        }
        tensor.bytes_mut().copy_from_slice(bytes);
        HostTensor::from_kernel(&tensor).ok_or_else(misfit)
    }

    /// Replaces all elements by others of their type, which lie in memory as bytes in the machine's order. Whether it did: it does
    /// not when other tensors share the elements, and when the bytes are not as many or no such elements.
    pub fn overwrite(&mut self, bytes: &[u8]) -> bool {
        fn copy<T: tilewright_core::tensor::Element>(values: &mut Arc<Buffer<T>>, bytes: &[u8]) -> bool {
            match (Arc::get_mut(values), T::from_bytes(bytes)) {
                (Some(values), Ok(elements)) if values.len() == elements.len() => {
                    values.copy_from_slice(elements);
                    true
                }
                _ => false,
            }
        }
        with_kernel_elements!(&mut self.elements, values => copy(values, bytes), else false)
    }

    /// A copy of a tensor that a kernel takes or gives. `None` when a byte of a truth value is neither 0 nor 1, and for types that no
    /// host tensor has.
    pub fn from_kernel(tensor: &AnyTensor) -> Option<Self> {
        fn copy<T: crate::tensor::Element + tilewright_core::tensor::Element>(
            tensor: &AnyTensor,
        ) -> Option<HostTensor> {
            HostTensor::new(tensor.shape(), tensor.as_slice::<T>()?.to_vec()).ok()
        }
        match tensor.dtype() {
            DType::Bool => copy::<bool>(tensor),
            DType::I8 => copy::<i8>(tensor),
            DType::I16 => copy::<i16>(tensor),
            DType::I32 => copy::<i32>(tensor),
            DType::I64 => copy::<i64>(tensor),
            DType::U8 => copy::<u8>(tensor),
            DType::U16 => copy::<u16>(tensor),
            DType::U32 => copy::<u32>(tensor),
            DType::U64 => copy::<u64>(tensor),
            DType::F16 => copy::<half::f16>(tensor),
            DType::BF16 => copy::<half::bf16>(tensor),
            DType::F32 => copy::<f32>(tensor),
            DType::F64 => copy::<f64>(tensor),
            DType::Float8E4M3FN | DType::Float8E5M2 | DType::Int4 | DType::UInt4 => None,
        }
    }
}

/// A copy of elements from bytes that are aligned to them. `None` when they are not, and when they are no such elements.
fn aligned(element: ElementType, shape: &[usize], bytes: &[u8]) -> Option<HostTensor> {
    fn copy<T: crate::tensor::Element + tilewright_core::tensor::Element>(
        shape: &[usize],
        bytes: &[u8],
    ) -> Option<HostTensor> {
        HostTensor::new(shape, T::from_bytes(bytes).ok()?.to_vec()).ok()
    }
    match element {
        ElementType::Bool => copy::<bool>(shape, bytes),
        ElementType::I8 => copy::<i8>(shape, bytes),
        ElementType::I16 => copy::<i16>(shape, bytes),
        ElementType::I32 => copy::<i32>(shape, bytes),
        ElementType::I64 => copy::<i64>(shape, bytes),
        ElementType::U8 => copy::<u8>(shape, bytes),
        ElementType::U16 => copy::<u16>(shape, bytes),
        ElementType::U32 => copy::<u32>(shape, bytes),
        ElementType::U64 => copy::<u64>(shape, bytes),
        ElementType::F16 => copy::<half::f16>(shape, bytes),
        ElementType::BF16 => copy::<half::bf16>(shape, bytes),
        ElementType::F32 => copy::<f32>(shape, bytes),
        ElementType::F64 => copy::<f64>(shape, bytes),
        _ => None,
    }
}

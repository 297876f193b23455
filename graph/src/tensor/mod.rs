//! Tensors in host memory, with element type and rank known at run time.

mod buffer;
mod cast;
mod element;
mod kernel;
mod number;
pub(crate) mod region;
mod shape;
pub mod small;

use std::fmt;
use std::sync::Arc;

pub use buffer::{Buffer, Stored};
pub use cast::CastError;
pub use element::{Element, ElementType, Elements, UnknownElementType};
pub(crate) use element::{with_element, with_elements, with_float, with_listed, with_number, with_small};
pub use number::{Float, Number, Wide};
pub use shape::{Places, TensorError, broadcast_shapes, count, row_major_strides};

/// A dense tensor in row-major order. Clones share the elements.
#[derive(Clone, PartialEq)]
pub struct HostTensor {
    shape: Vec<usize>,
    elements: Elements,
}

impl HostTensor {
    /// A tensor of elements in row-major order.
    ///
    /// # Errors
    /// [`TensorError::Length`] when there are not as many as the shape has.
    pub fn new<T: Element>(shape: &[usize], elements: Vec<T>) -> Result<Self, TensorError> {
        Self::of_buffer(shape, elements.into())
    }

    /// As [`HostTensor::new`].
    pub(crate) fn of_buffer<T: Element>(shape: &[usize], elements: Buffer<T>) -> Result<Self, TensorError> {
        let expected = count(shape)?;
        if expected != elements.len() {
            return Err(TensorError::Length { shape: shape.to_vec(), expected, found: elements.len() });
        }
        Ok(HostTensor { shape: shape.to_vec(), elements: T::wrap(elements) })
    }

    /// A tensor of one value everywhere.
    ///
    /// # Errors
    /// [`TensorError::TooLarge`] when the elements do not fit into memory.
    pub fn full<T: Element>(shape: &[usize], value: T) -> Result<Self, TensorError> {
        let length = count(shape)?;
        let mut elements = Vec::new();
        elements.try_reserve_exact(length).map_err(|_| TensorError::TooLarge { shape: shape.to_vec() })?;
        elements.resize(length, value);
        Ok(HostTensor { shape: shape.to_vec(), elements: T::wrap(elements.into()) })
    }

    /// A tensor of rank 0.
    pub fn scalar<T: Element>(value: T) -> Self {
        HostTensor { shape: Vec::new(), elements: T::wrap(vec![value].into()) }
    }

    /// A tensor of rank 1.
    pub fn vector<T: Element>(elements: Vec<T>) -> Self {
        HostTensor { shape: vec![elements.len()], elements: T::wrap(elements.into()) }
    }

    /// A tensor whose elements are the default of their type: zero, false or the empty string.
    ///
    /// # Errors
    /// As [`HostTensor::full`].
    pub fn zeros(element: ElementType, shape: &[usize]) -> Result<Self, TensorError> {
        with_element!(element, T => HostTensor::full(shape, T::default()))
    }

    /// The same elements in another shape.
    ///
    /// # Errors
    /// [`TensorError::Length`] when it has another number of elements.
    pub fn reshape(&self, shape: &[usize]) -> Result<Self, TensorError> {
        let expected = count(shape)?;
        if expected != self.len() {
            return Err(TensorError::Length { shape: shape.to_vec(), expected, found: self.len() });
        }
        Ok(HostTensor { shape: shape.to_vec(), elements: self.elements.clone() })
    }

    /// Whether another tensor has the very same elements, not merely equal ones, in the same shape.
    pub fn is_same(&self, other: &Self) -> bool {
        self.shape == other.shape && self.elements.is_same(&other.elements)
    }

    /// The type of the elements.
    pub fn element(&self) -> ElementType {
        fn of<T: Element>(_: &Arc<Buffer<T>>) -> ElementType {
            T::TYPE
        }
        with_elements!(&self.elements, values => of(values))
    }

    /// The extents, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        with_elements!(&self.elements, values => values.len())
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads elements that are in a file alone into memory, where they stay. Elements have to be loaded before they are asked for.
    ///
    /// # Errors
    /// [`TensorError::Source`] when the file cannot be read, or has changed.
    pub fn load(&self) -> Result<(), TensorError> {
        Ok(with_elements!(&self.elements, values => values.load())?)
    }

    /// The same tensor without its elements in memory, if they can be read again from the file that they come from.
    pub fn without_memory(&self) -> Option<Self> {
        fn of<T: Element>(shape: &[usize], values: &Buffer<T>) -> Option<HostTensor> {
            let Buffer::Stored(stored) = values else { return None };
            let elements = T::wrap(Buffer::Stored(stored.without_memory()));
            Some(HostTensor { shape: shape.to_vec(), elements })
        }
        with_elements!(&self.elements, values => of(&self.shape, values))
    }

    /// The elements with their type.
    pub fn elements(&self) -> &Elements {
        &self.elements
    }

    /// The elements, when they are of type `T`.
    pub fn as_slice<T: Element>(&self) -> Option<&[T]> {
        T::view(&self.elements).map(|elements| &elements[..])
    }

    /// The elements.
    ///
    /// # Errors
    /// [`TensorError::Element`] when they are not of type `T`.
    pub fn expect<T: Element>(&self) -> Result<&[T], TensorError> {
        self.as_slice()
            .ok_or_else(|| TensorError::Element { expected: T::TYPE.name(), found: self.element() })
    }

    /// The number of bytes that the elements take, strings by their bytes.
    pub fn byte_count(&self) -> usize {
        match &self.elements {
            Elements::String(values) => values.iter().map(|value| value.len()).sum(),
            elements => {
                fn bytes<T>(values: &Buffer<T>) -> usize {
                    size_of::<T>() * values.len()
                }
                with_elements!(elements, values => bytes(values))
            }
        }
    }
}

impl fmt::Debug for HostTensor {
    /// Type and shape, and the first elements.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        write!(f, "{}{:?}", self.element(), self.shape)?;
        if let Err(error) = self.load() {
            return write!(f, "[{error}]");
        }
        with_elements!(&self.elements, values => {
            f.debug_list().entries(values.iter().take(SHOWN)).finish()?;
            if values.len() > SHOWN { f.write_str("…") } else { Ok(()) }
        })
    }
}

//! The owned tensor.

use std::fmt;
use std::ops::{Deref, DerefMut, Index, IndexMut};

use crate::tensor::shape::{advance, dense_strides, index_panic, position};
use crate::tensor::{ALIGNMENT, Element, IdentityCell, ShapeError, Storage, checked_len};

/// A dense, row-major tensor that owns its elements, aligned to [`ALIGNMENT`] bytes.
///
/// The element type and the rank are part of the type; the extents are not. A tensor of rank 0
/// holds one element. `tensor[[i, j]]` panics outside the shape, as a slice does.
///
/// A tensor knows whether its elements may have changed since it was last asked for its [`Identity`](crate::tensor::Identity).
pub struct Tensor<T, const RANK: usize> {
    elements: Elements<T>,
    shape: [usize; RANK],
    identity: IdentityCell,
}

impl<T: Element, const RANK: usize> Tensor<T, RANK> {
    /// A tensor of zeros (`false` for `bool`).
    ///
    /// # Errors
    /// [`ShapeError::TooLarge`] when the elements do not fit into memory.
    pub fn zeros(shape: [usize; RANK]) -> Result<Self, ShapeError> {
        Self::full(shape, T::default())
    }

    /// A tensor for a kernel that writes every element; its content is unspecified. Its memory is that of a dropped
    /// tensor of this kind, where there is one of the size, and is [kept](crate::tensor::spare) for the next one. Before new memory
    /// is touched, `prepare` receives its address and its size in bytes, so that it can ask the system
    /// for pages of another kind.
    ///
    /// # Errors
    /// As [`Tensor::zeros`].
    pub fn for_result(
        shape: [usize; RANK],
        prepare: impl FnOnce(*const u8, usize),
    ) -> Result<Self, ShapeError> {
        let mut storage = match T::spares().take(checked_len(&shape, size_of::<T>())?) {
            Some(spare) => spare,
            None => {
                let (mut new, len) = allocate::<T>(&shape)?;
                prepare(new.as_ptr().cast(), len * size_of::<T>());
                new.resize(len, T::default());
                new
            }
        };
        if cfg!(debug_assertions) {
            // An element that a kernel forgets to write must not look like a zero.
            storage.fill(T::from_f64(if T::DTYPE.is_float() { f64::NAN } else { 85.0 }));
        }
        let elements = Elements { storage, keep: Some(|storage| T::spares().put(storage)) };
        Ok(Tensor { elements, shape, identity: IdentityCell::default() })
    }

    /// A tensor whose elements are all `value`.
    ///
    /// # Errors
    /// As [`Tensor::zeros`].
    pub fn full(shape: [usize; RANK], value: T) -> Result<Self, ShapeError> {
        let (mut elements, len) = allocate(&shape)?;
        elements.resize(len, value);
        Ok(Tensor::of(elements, shape))
    }

    /// A copy of elements in row-major order.
    ///
    /// # Errors
    /// [`ShapeError::Length`] when there are not as many as the shape has, or as [`Tensor::zeros`].
    pub fn from_slice(elements: &[T], shape: [usize; RANK]) -> Result<Self, ShapeError> {
        let (mut storage, len) = allocate(&shape)?;
        if len != elements.len() {
            return Err(ShapeError::Length { shape: shape.to_vec(), expected: len, found: elements.len() });
        }
        storage.extend_from_slice(elements);
        Ok(Tensor::of(storage, shape))
    }

    /// As [`Tensor::from_slice`]. The elements are copied, because a `Vec` is not aligned as tensors are.
    ///
    /// # Errors
    /// As [`Tensor::from_slice`].
    pub fn from_vec(elements: Vec<T>, shape: [usize; RANK]) -> Result<Self, ShapeError> {
        Self::from_slice(&elements, shape)
    }

    /// A tensor whose element at each index is `element(index)`, computed in row-major order.
    ///
    /// # Errors
    /// As [`Tensor::zeros`].
    pub fn from_fn(
        shape: [usize; RANK],
        mut element: impl FnMut([usize; RANK]) -> T,
    ) -> Result<Self, ShapeError> {
        let (mut elements, len) = allocate(&shape)?;
        let mut index = [0; RANK];
        for _ in 0..len {
            elements.push(element(index));
            advance(&mut index, &shape);
        }
        Ok(Tensor::of(elements, shape))
    }

    fn of(storage: Storage<T>, shape: [usize; RANK]) -> Self {
        Tensor { elements: Elements { storage, keep: None }, shape, identity: IdentityCell::default() }
    }

    /// The cell with the identity of the contents.
    pub(crate) fn identity_cell(&self) -> &IdentityCell {
        &self.identity
    }

    /// The extents, outermost first.
    pub fn shape(&self) -> [usize; RANK] {
        self.shape
    }

    /// The extent of one dimension.
    ///
    /// # Panics
    /// When `dimension` is not below the rank.
    pub fn dim(&self, dimension: usize) -> usize {
        self.shape[dimension]
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// The elements in row-major order.
    pub fn as_slice(&self) -> &[T] {
        &self.elements
    }

    /// The elements in row-major order, for writing.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        self.identity.forget();
        &mut self.elements
    }

    /// The element at an index, or `None` outside the shape.
    pub fn get(&self, index: [usize; RANK]) -> Option<T> {
        position(&index, &self.shape, &dense_strides(&self.shape)).map(|at| self.elements[at])
    }

    /// The elements in row-major order.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.elements.iter()
    }

    /// The same elements under another shape.
    ///
    /// # Errors
    /// [`ShapeError::Length`] when the shapes have different numbers of elements.
    pub fn reshape<const OTHER: usize>(self, shape: [usize; OTHER]) -> Result<Tensor<T, OTHER>, ShapeError> {
        let expected = checked_len(&shape, size_of::<T>())?;
        if expected != self.len() {
            return Err(ShapeError::Length { shape: shape.to_vec(), expected, found: self.len() });
        }
        Ok(Tensor { elements: self.elements, shape, identity: IdentityCell::default() })
    }
}

/// The elements of a tensor, and the use of their memory after it is dropped.
struct Elements<T> {
    storage: Storage<T>,
    /// `None` frees the memory.
    keep: Option<fn(Storage<T>)>,
}

impl<T> Deref for Elements<T> {
    type Target = Storage<T>;

    #[inline]
    fn deref(&self) -> &Storage<T> {
        &self.storage
    }
}

impl<T> DerefMut for Elements<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Storage<T> {
        &mut self.storage
    }
}

impl<T> Drop for Elements<T> {
    fn drop(&mut self) {
        if let Some(keep) = self.keep {
            keep(std::mem::replace(&mut self.storage, Storage::new(ALIGNMENT)));
        }
    }
}

impl<T: Clone> Clone for Elements<T> {
    fn clone(&self) -> Self {
        Elements { storage: self.storage.clone(), keep: None }
    }
}

impl<T: Clone, const RANK: usize> Clone for Tensor<T, RANK> {
    fn clone(&self) -> Self {
        Tensor { elements: self.elements.clone(), shape: self.shape, identity: IdentityCell::default() }
    }
}

impl<T: PartialEq, const RANK: usize> PartialEq for Tensor<T, RANK> {
    fn eq(&self, other: &Self) -> bool {
        self.shape == other.shape && self.elements.storage == other.elements.storage
    }
}

impl<T: Element> Tensor<T, 0> {
    /// A tensor of rank 0 that holds one element.
    pub fn scalar(value: T) -> Self {
        Tensor::of(Storage::from_slice(ALIGNMENT, &[value]), [])
    }
}

fn allocate<T: Element>(shape: &[usize]) -> Result<(Storage<T>, usize), ShapeError> {
    let element_bytes = size_of::<T>();
    let len = checked_len(shape, element_bytes)?;
    let mut elements = Storage::new(ALIGNMENT);
    elements
        .try_reserve_exact(len)
        .map_err(|_| ShapeError::TooLarge { shape: shape.to_vec(), element_bytes })?;
    Ok((elements, len))
}

impl<T: Element, const RANK: usize> Index<[usize; RANK]> for Tensor<T, RANK> {
    type Output = T;

    #[inline]
    #[track_caller]
    fn index(&self, index: [usize; RANK]) -> &T {
        match position(&index, &self.shape, &dense_strides(&self.shape)) {
            Some(at) => &self.elements[at],
            None => index_panic(&index, &self.shape),
        }
    }
}

impl<T: Element, const RANK: usize> IndexMut<[usize; RANK]> for Tensor<T, RANK> {
    #[inline]
    #[track_caller]
    fn index_mut(&mut self, index: [usize; RANK]) -> &mut T {
        match position(&index, &self.shape, &dense_strides(&self.shape)) {
            Some(at) => {
                self.identity.forget();
                &mut self.elements[at]
            }
            None => index_panic(&index, &self.shape),
        }
    }
}

impl<'a, T: Element, const RANK: usize> IntoIterator for &'a Tensor<T, RANK> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: Element, const RANK: usize> fmt::Display for Tensor<T, RANK> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_summary(f, T::DTYPE, &self.shape, &self.elements)
    }
}

impl<T: Element, const RANK: usize> fmt::Debug for Tensor<T, RANK> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One line: type, shape and the first elements.
pub(crate) fn fmt_summary<T: Element>(
    f: &mut fmt::Formatter<'_>,
    dtype: crate::dtype::DType,
    shape: &[usize],
    elements: &[T],
) -> fmt::Result {
    const SHOWN: usize = 8;
    write!(f, "{dtype}{shape:?} [")?;
    for (position, element) in elements.iter().take(SHOWN).enumerate() {
        let separator = if position == 0 { "" } else { ", " };
        write!(f, "{separator}{element}")?;
    }
    f.write_str(if elements.len() > SHOWN { ", …]" } else { "]" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_lie_in_row_major_order() {
        let tensor = Tensor::from_fn([2, 3], |[i, j]| (10 * i + j) as i32).unwrap();
        assert_eq!(tensor.as_slice(), [0, 1, 2, 10, 11, 12]);
        assert_eq!(tensor[[1, 2]], 12);
        assert_eq!(tensor.get([2, 0]), None);
        assert_eq!((tensor.shape(), tensor.dim(1), tensor.len()), ([2, 3], 3, 6));
        assert_eq!(tensor.as_slice().as_ptr() as usize % ALIGNMENT, 0);
    }

    #[test]
    fn rank_zero_holds_one_element() {
        let mut scalar = Tensor::<f32, 0>::zeros([]).unwrap();
        scalar[[]] = 4.0;
        assert_eq!(scalar, Tensor::scalar(4.0));
        assert_eq!(scalar.len(), 1);
    }

    #[test]
    fn empty_dimensions_are_allowed() {
        let empty = Tensor::<f64, 2>::zeros([3, 0]).unwrap();
        assert!(empty.is_empty());
        assert_eq!(Tensor::from_fn([0, 5], |_| 1u8).unwrap().len(), 0);
    }

    #[test]
    fn impossible_shapes_are_errors() {
        assert!(matches!(Tensor::<f32, 2>::zeros([usize::MAX, 2]), Err(ShapeError::TooLarge { .. })));
        assert!(matches!(Tensor::<f32, 1>::zeros([usize::MAX / 16]), Err(ShapeError::TooLarge { .. })));
        let error = Tensor::from_slice(&[1.0f32, 2.0], [3]).unwrap_err();
        assert_eq!(error.to_string(), "shape [3] has 3 elements, but 2 were given");
    }

    #[test]
    #[should_panic(expected = "index [2, 0] is outside a tensor of shape [2, 3]")]
    fn an_index_outside_panics_with_index_and_shape() {
        let tensor = Tensor::<f32, 2>::zeros([2, 3]).unwrap();
        let _ = tensor[[2, 0]];
    }

    #[test]
    fn reshape_keeps_the_elements() {
        let tensor = Tensor::from_vec(vec![1u8, 2, 3, 4, 5, 6], [2, 3]).unwrap().reshape([6]).unwrap();
        assert_eq!(tensor[[4]], 5);
        assert!(tensor.reshape([4]).is_err());
    }

    #[test]
    fn text_is_short() {
        let tensor = Tensor::from_fn([3, 4], |[i, j]| (i * j) as f32).unwrap();
        assert_eq!(tensor.to_string(), "f32[3, 4] [0, 0, 0, 0, 0, 1, 2, 3, …]");
        assert_eq!(format!("{:?}", Tensor::scalar(true)), "bool[] [true]");
    }
}

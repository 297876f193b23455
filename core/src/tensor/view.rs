//! Borrowed tensors with strides.

use std::fmt;
use std::ops::{Index, IndexMut};

use crate::strides::lie_apart;
use crate::tensor::dense::fmt_summary;
use crate::tensor::shape::{dense_strides, index_panic, position};
use crate::tensor::{Element, IdentifiedBytes, IdentityCell, ShapeError, Tensor, checked_len};

/// A view is not dense and row-major, as kernels require.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a view of shape {shape:?} with strides {strides:?} is not contiguous; copy it with `TensorView::to_tensor` first"
)]
pub struct NotContiguous {
    /// The view's shape.
    pub shape: Vec<usize>,
    /// The distance of neighbours along each dimension, in elements.
    pub strides: Vec<usize>,
}

/// A borrowed tensor: a slice, a shape, and the distance of neighbours along each dimension in elements.
#[derive(Clone, Copy)]
pub struct TensorView<'a, T, const RANK: usize> {
    elements: &'a [T],
    shape: [usize; RANK],
    strides: [usize; RANK],
    /// Of the tensor that this is a view of the whole of.
    identity: Option<&'a IdentityCell>,
}

impl<T: PartialEq, const RANK: usize> PartialEq for TensorView<'_, T, RANK> {
    fn eq(&self, other: &Self) -> bool {
        self.shape == other.shape && self.strides == other.strides && self.elements == other.elements
    }
}

/// A borrowed tensor that can be written; see [`TensorView`].
#[derive(PartialEq)]
pub struct TensorViewMut<'a, T, const RANK: usize> {
    elements: &'a mut [T],
    shape: [usize; RANK],
    strides: [usize; RANK],
}

/// The methods of both views.
macro_rules! common_view {
    ($view:ident, $slice:ty) => {
        impl<'a, T: Element, const RANK: usize> $view<'a, T, RANK> {
            /// A dense, row-major view of all elements of a slice.
            ///
            /// # Errors
            /// [`ShapeError::Length`] when the slice has not as many elements as the shape.
            pub fn new(elements: $slice, shape: [usize; RANK]) -> Result<Self, ShapeError> {
                let expected = checked_len(&shape, size_of::<T>())?;
                if expected != elements.len() {
                    let found = elements.len();
                    return Err(ShapeError::Length { shape: shape.to_vec(), expected, found });
                }
                Ok(Self::of(elements, shape, dense_strides(&shape)))
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

            /// The distance of neighbours along each dimension, in elements.
            pub fn strides(&self) -> [usize; RANK] {
                self.strides
            }

            /// The number of elements of the view (its slice may have more).
            pub fn len(&self) -> usize {
                self.shape.iter().product()
            }

            /// Whether there are no elements.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Whether the elements lie densely in row-major order. Strides along dimensions of extent 1 do
            /// not matter, and an empty view is contiguous.
            pub fn is_contiguous(&self) -> bool {
                let dense = dense_strides(&self.shape);
                self.is_empty() || (0..RANK).all(|d| self.shape[d] == 1 || self.strides[d] == dense[d])
            }

            /// The error for a caller that needs contiguous elements where these are not.
            pub fn not_contiguous(&self) -> NotContiguous {
                NotContiguous { shape: self.shape.to_vec(), strides: self.strides.to_vec() }
            }

            /// The elements in row-major order, when they lie so.
            pub fn as_slice(&self) -> Option<&[T]> {
                self.is_contiguous().then(|| &self.elements[..self.len()])
            }

            /// A dense copy.
            ///
            /// # Errors
            /// [`ShapeError::TooLarge`] when the copy does not fit into memory (a view can repeat elements).
            pub fn to_tensor(&self) -> Result<Tensor<T, RANK>, ShapeError> {
                Tensor::from_fn(self.shape, |index| self[index])
            }
        }

        impl<T: Element, const RANK: usize> Index<[usize; RANK]> for $view<'_, T, RANK> {
            type Output = T;

            #[inline]
            #[track_caller]
            fn index(&self, index: [usize; RANK]) -> &T {
                match position(&index, &self.shape, &self.strides) {
                    Some(at) => &self.elements[at],
                    None => index_panic(&index, &self.shape),
                }
            }
        }

        impl<T: Element, const RANK: usize> fmt::Debug for $view<'_, T, RANK> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.as_slice() {
                    Some(elements) => fmt_summary(f, T::DTYPE, &self.shape, elements),
                    None => write!(f, "{}{:?} with strides {:?}", T::DTYPE, self.shape, self.strides),
                }
            }
        }
    };
}

common_view!(TensorView, &'a [T]);
common_view!(TensorViewMut, &'a mut [T]);

impl<'a, T: Element, const RANK: usize> TensorView<'a, T, RANK> {
    fn of(elements: &'a [T], shape: [usize; RANK], strides: [usize; RANK]) -> Self {
        TensorView { elements, shape, strides, identity: None }
    }

    /// [`TensorView::strides`], borrowed.
    pub(super) fn strides_slice(&self) -> &[usize] {
        &self.strides
    }

    /// All elements of the slice that the view is of.
    pub(super) fn elements(&self) -> &'a [T] {
        self.elements
    }

    /// The bytes of the elements with the identity of the contents, when this is a view of a whole [`Tensor`]; what other
    /// memory holds may change from one call to the next.
    pub fn identified_bytes(&self) -> Option<IdentifiedBytes<'a>> {
        Some(IdentifiedBytes::new(T::as_bytes(self.elements), self.identity?.get()))
    }

    /// A view with strides, in elements. A stride of 0 repeats elements.
    ///
    /// # Errors
    /// [`ShapeError::Strides`] when the farthest element lies outside the slice, [`ShapeError::TooLarge`]
    /// when the shape's product overflows.
    pub fn with_strides(
        elements: &'a [T],
        shape: [usize; RANK],
        strides: [usize; RANK],
    ) -> Result<Self, ShapeError> {
        check_strides::<T, RANK>(elements.len(), &shape, &strides)?;
        Ok(Self::of(elements, shape, strides))
    }
}

impl<'a, T: Element, const RANK: usize> TensorViewMut<'a, T, RANK> {
    fn of(elements: &'a mut [T], shape: [usize; RANK], strides: [usize; RANK]) -> Self {
        TensorViewMut { elements, shape, strides }
    }

    /// A view with strides, in elements.
    ///
    /// # Errors
    /// As [`TensorView::with_strides`], and [`ShapeError::Overlap`] when the dimensions, in order of
    /// their strides, do not each step over all of the smaller ones.
    pub fn with_strides(
        elements: &'a mut [T],
        shape: [usize; RANK],
        strides: [usize; RANK],
    ) -> Result<Self, ShapeError> {
        check_strides::<T, RANK>(elements.len(), &shape, &strides)?;
        // The strides that count fit: the farthest element lies in the slice.
        if !lie_apart(&shape.map(|extent| extent as i64), &strides.map(|stride| stride as i64)) {
            return Err(ShapeError::Overlap { shape: shape.to_vec(), strides: strides.to_vec() });
        }
        Ok(Self::of(elements, shape, strides))
    }

    /// All elements of the slice that the view is of.
    pub(super) fn elements_mut(&mut self) -> &mut [T] {
        self.elements
    }

    /// The elements in row-major order for writing, when they lie so.
    pub fn as_mut_slice(&mut self) -> Option<&mut [T]> {
        let len = self.len();
        self.is_contiguous().then(|| &mut self.elements[..len])
    }

    /// The elements from the first to the last one of the view, for writing. They belong to it only at its [strides](Self::strides), unless it is
    /// [contiguous](Self::is_contiguous).
    pub fn memory_mut(&mut self) -> &mut [T] {
        if self.is_empty() {
            return &mut [];
        }
        let last: usize =
            self.shape.iter().zip(self.strides).map(|(extent, stride)| (extent - 1) * stride).sum();
        &mut self.elements[..=last]
    }

    /// The view for reading only.
    pub fn as_view(&self) -> TensorView<'_, T, RANK> {
        TensorView::of(self.elements, self.shape, self.strides)
    }
}

fn check_strides<T, const RANK: usize>(
    found: usize,
    shape: &[usize; RANK],
    strides: &[usize; RANK],
) -> Result<(), ShapeError> {
    if checked_len(shape, size_of::<T>())? == 0 {
        return Ok(());
    }
    let farthest = shape
        .iter()
        .zip(strides)
        .try_fold(0usize, |sum, (&extent, &stride)| sum.checked_add((extent - 1).checked_mul(stride)?));
    match farthest {
        Some(farthest) if farthest < found => Ok(()),
        _ => Err(ShapeError::Strides { shape: shape.to_vec(), strides: strides.to_vec(), found }),
    }
}

impl<T: Element, const RANK: usize> IndexMut<[usize; RANK]> for TensorViewMut<'_, T, RANK> {
    #[inline]
    #[track_caller]
    fn index_mut(&mut self, index: [usize; RANK]) -> &mut T {
        match position(&index, &self.shape, &self.strides) {
            Some(at) => &mut self.elements[at],
            None => index_panic(&index, &self.shape),
        }
    }
}

impl<'a, T: Element, const RANK: usize> From<&'a Tensor<T, RANK>> for TensorView<'a, T, RANK> {
    fn from(tensor: &'a Tensor<T, RANK>) -> Self {
        let shape = tensor.shape();
        let identity = Some(tensor.identity_cell());
        TensorView { elements: tensor.as_slice(), shape, strides: dense_strides(&shape), identity }
    }
}

impl<'a, T: Element, const RANK: usize> From<&'a mut Tensor<T, RANK>> for TensorView<'a, T, RANK> {
    fn from(tensor: &'a mut Tensor<T, RANK>) -> Self {
        TensorView::from(&*tensor)
    }
}

impl<'a, T: Element, const RANK: usize> From<&'a TensorView<'_, T, RANK>> for TensorView<'a, T, RANK> {
    fn from(view: &'a TensorView<'_, T, RANK>) -> Self {
        *view
    }
}

impl<'a, T: Element, const RANK: usize> From<&'a TensorViewMut<'_, T, RANK>> for TensorView<'a, T, RANK> {
    fn from(view: &'a TensorViewMut<'_, T, RANK>) -> Self {
        view.as_view()
    }
}

impl<'a, T: Element, const RANK: usize> From<&'a mut Tensor<T, RANK>> for TensorViewMut<'a, T, RANK> {
    fn from(tensor: &'a mut Tensor<T, RANK>) -> Self {
        let shape = tensor.shape();
        TensorViewMut::of(tensor.as_mut_slice(), shape, dense_strides(&shape))
    }
}

impl<'a, T: Element, const RANK: usize> From<&'a mut TensorViewMut<'_, T, RANK>>
    for TensorViewMut<'a, T, RANK>
{
    fn from(view: &'a mut TensorViewMut<'_, T, RANK>) -> Self {
        TensorViewMut::of(&mut *view.elements, view.shape, view.strides)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_pick_elements() {
        let elements: Vec<i32> = (0..12).collect();
        let transposed = TensorView::with_strides(&elements, [4, 3], [1, 4]).unwrap();
        assert_eq!(transposed[[3, 2]], 11);
        assert!(!transposed.is_contiguous());
        assert_eq!(transposed.as_slice(), None);
        assert_eq!(transposed.to_tensor().unwrap().as_slice()[..4], [0, 4, 8, 1]);
        let rows = TensorView::with_strides(&elements, [2, 4], [4, 1]).unwrap();
        assert_eq!(rows.as_slice(), Some(&elements[..8]));
        let repeated = TensorView::with_strides(&elements, [5, 2], [0, 1]).unwrap();
        assert_eq!(repeated[[4, 1]], 1);
    }

    #[test]
    fn memory_ends_with_the_last_element() {
        let mut elements: Vec<i32> = (0..12).collect();
        let mut columns = TensorViewMut::with_strides(&mut elements[1..], [3, 2], [4, 1]).unwrap();
        assert_eq!(columns.memory_mut(), (1..=10).collect::<Vec<i32>>());
        let mut dense = TensorViewMut::with_strides(&mut elements, [2, 3], [3, 1]).unwrap();
        assert_eq!(dense.memory_mut().len(), 6);
        let mut none = TensorViewMut::with_strides(&mut elements, [0, 3], [3, 1]).unwrap();
        assert!(none.memory_mut().is_empty());
    }

    #[test]
    fn views_outside_their_slice_are_refused() {
        let mut elements = [0u8; 6];
        assert!(matches!(TensorView::new(&elements, [7]), Err(ShapeError::Length { found: 6, .. })));
        for (shape, strides) in [([2, 3], [4, 1]), ([2, 3], [3, 2]), ([2, 2], [usize::MAX, 1])] {
            let view = TensorView::with_strides(&elements, shape, strides);
            assert!(matches!(view, Err(ShapeError::Strides { .. })), "{shape:?} {strides:?}");
        }
        assert!(TensorView::with_strides(&elements, [0, 9], [100, 1]).is_ok());
        let overlapping = TensorViewMut::with_strides(&mut elements, [2, 3], [2, 1]);
        assert!(matches!(overlapping, Err(ShapeError::Overlap { .. })));
        assert!(TensorViewMut::with_strides(&mut elements, [3, 2], [1, 3]).is_ok());
    }

    #[test]
    fn extent_one_and_empty_views_are_contiguous() {
        let elements = [1.0f32, 2.0];
        assert!(TensorView::with_strides(&elements, [1, 2], [77, 1]).unwrap().is_contiguous());
        assert!(TensorView::with_strides(&elements[..0], [0, 2], [5, 9]).unwrap().is_contiguous());
        assert_eq!(TensorView::new(&elements[..1], []).unwrap()[[]], 1.0);
    }

    #[test]
    fn tensors_become_views() {
        let mut tensor = Tensor::from_fn([2, 2], |[i, j]| (2 * i + j) as i64).unwrap();
        let mut view = TensorViewMut::from(&mut tensor);
        view[[1, 0]] = 9;
        assert_eq!(view.as_mut_slice().unwrap(), [0, 1, 9, 3]);
        assert_eq!(TensorView::from(&tensor).as_slice(), Some(&[0, 1, 9, 3][..]));
    }

    #[test]
    #[should_panic(expected = "index [0, 2] is outside a tensor of shape [2, 2]")]
    fn an_index_outside_panics_with_index_and_shape() {
        let elements = [0u8; 4];
        let _ = TensorView::new(&elements, [2, 2]).unwrap()[[0, 2]];
    }
}

//! Parts of tensors along the first dimension, without a copy.

use std::ops::Range;

use crate::tensor::{Element, ShapeError, Tensor, TensorView, TensorViewMut};

/// The first element of a range of rows, and the shape of the range.
fn part<const RANK: usize>(
    mut shape: [usize; RANK],
    strides: &[usize; RANK],
    range: &Range<usize>,
) -> Result<(usize, [usize; RANK]), ShapeError> {
    let fits = shape.first().is_some_and(|&extent| range.start <= range.end && range.end <= extent);
    if !fits {
        let (start, end) = (range.start, range.end);
        return Err(ShapeError::Range { shape: shape.to_vec(), axis: 0, start, end });
    }
    shape[0] = range.end - range.start;
    Ok((range.start * strides[0], shape))
}

impl<'a, T: Element, const RANK: usize> TensorView<'a, T, RANK> {
    /// The view of the rows of a range: indices of the first dimension.
    ///
    /// # Errors
    /// [`ShapeError::Range`] when the range leaves the first dimension, or there is none.
    pub fn slice(&self, range: Range<usize>) -> Result<TensorView<'a, T, RANK>, ShapeError> {
        let (start, shape) = part(self.shape(), &self.strides(), &range)?;
        TensorView::with_strides(self.elements().get(start..).unwrap_or_default(), shape, self.strides())
    }
}

impl<T: Element, const RANK: usize> TensorViewMut<'_, T, RANK> {
    /// The view of the rows of a range: indices of the first dimension.
    ///
    /// # Errors
    /// As [`TensorView::slice`].
    pub fn slice_mut(&mut self, range: Range<usize>) -> Result<TensorViewMut<'_, T, RANK>, ShapeError> {
        let strides = self.strides();
        let (start, shape) = part(self.shape(), &strides, &range)?;
        TensorViewMut::with_strides(self.elements_mut().get_mut(start..).unwrap_or_default(), shape, strides)
    }
}

impl<T: Element, const RANK: usize> Tensor<T, RANK> {
    /// A view of the rows of a range: indices of the first dimension. Kernels take it without a copy.
    ///
    /// # Errors
    /// [`ShapeError::Range`] when the range leaves the first dimension, or there is none.
    pub fn slice(&self, range: Range<usize>) -> Result<TensorView<'_, T, RANK>, ShapeError> {
        TensorView::from(self).slice(range)
    }

    /// A view for writing of the rows of a range: indices of the first dimension.
    ///
    /// # Errors
    /// As [`Tensor::slice`].
    pub fn slice_mut(&mut self, range: Range<usize>) -> Result<TensorViewMut<'_, T, RANK>, ShapeError> {
        let shape = self.shape();
        let strides = TensorView::from(&*self).strides();
        let (start, shape) = part(shape, &strides, &range)?;
        TensorViewMut::with_strides(self.as_mut_slice().get_mut(start..).unwrap_or_default(), shape, strides)
    }

    /// The elements in row-major order. They are copied: a tensor's memory is aligned, that of a `Vec` is not.
    pub fn into_vec(self) -> Vec<T> {
        self.as_slice().to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Tensor<i32, 2> {
        Tensor::from_fn([4, 3], |[i, j]| (10 * i + j) as i32).expect("it fits into memory")
    }

    #[test]
    fn a_slice_has_the_rows_of_its_range() {
        let tensor = rows();
        let middle = tensor.slice(1..3).expect("two rows");
        assert_eq!((middle.shape(), middle.as_slice()), ([2, 3], Some(&[10, 11, 12, 20, 21, 22][..])));
        assert_eq!(middle.slice(1..2).expect("a row").as_slice(), Some(&[20, 21, 22][..]));
        assert_eq!(tensor.slice(4..4).expect("no row").len(), 0);
        assert_eq!(tensor.clone().into_vec()[..4], [0, 1, 2, 10]);
    }

    #[test]
    fn rows_are_written_through_a_slice() {
        let mut tensor = rows();
        tensor.slice_mut(2..4).expect("two rows")[[1, 0]] = -1;
        assert_eq!(tensor[[3, 0]], -1);
        let mut view = TensorViewMut::from(&mut tensor);
        view.slice_mut(0..1).expect("a row")[[0, 2]] = -2;
        assert_eq!(tensor[[0, 2]], -2);
    }

    #[test]
    fn a_range_that_leaves_the_rows_is_an_error() {
        let tensor = rows();
        let reversed = Range { start: 2, end: 1 };
        for range in [3..5, 5..5, reversed] {
            let error = tensor.slice(range).expect_err("it leaves the rows");
            assert!(matches!(error, ShapeError::Range { .. }), "{error}");
        }
        assert!(Tensor::scalar(1i32).slice(0..0).is_err(), "there are no rows");
    }
}

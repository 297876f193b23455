//! Other views of the same elements: dimensions in another order, parts and repetitions along them.

use std::ops::Range;

use crate::tensor::{Element, ShapeError, TensorView};

impl<'a, T: Element, const RANK: usize> TensorView<'a, T, RANK> {
    /// The view with its dimensions in another order: dimension `order[d]` of this one becomes dimension `d`. `permute([1, 0])` is
    /// the transposed matrix.
    ///
    /// # Errors
    /// [`ShapeError::Order`] when `order` does not name each dimension once.
    pub fn permute(&self, order: [usize; RANK]) -> Result<Self, ShapeError> {
        let mut sorted = order;
        sorted.sort_unstable();
        if sorted.iter().enumerate().any(|(position, dimension)| position != *dimension) {
            return Err(ShapeError::Order { order: order.to_vec(), rank: RANK });
        }
        let (shape, strides) = (self.shape(), self.strides());
        TensorView::with_strides(self.elements(), order.map(|d| shape[d]), order.map(|d| strides[d]))
    }

    /// The view of a range of indices of one dimension. Along the first one, [`slice`](TensorView::slice) says the same.
    ///
    /// # Errors
    /// [`ShapeError::Axis`] when there is no such dimension, and [`ShapeError::Range`] when the range leaves it.
    pub fn slice_along(&self, axis: usize, range: Range<usize>) -> Result<Self, ShapeError> {
        let (mut shape, strides) = (self.shape(), self.strides());
        let extent = *shape.get(axis).ok_or(ShapeError::Axis { axis, rank: RANK })?;
        if range.start > range.end || range.end > extent {
            let (start, end) = (range.start, range.end);
            return Err(ShapeError::Range { shape: shape.to_vec(), axis, start, end });
        }
        shape[axis] = range.end - range.start;
        let start = range.start * strides[axis];
        TensorView::with_strides(self.elements().get(start..).unwrap_or_default(), shape, strides)
    }

    /// The view of every `step`th index of one dimension, from the first on.
    ///
    /// # Errors
    /// [`ShapeError::Axis`] when there is no such dimension, and [`ShapeError::Step`] when the step is 0.
    pub fn step_along(&self, axis: usize, step: usize) -> Result<Self, ShapeError> {
        let (mut shape, mut strides) = (self.shape(), self.strides());
        let extent = *shape.get(axis).ok_or(ShapeError::Axis { axis, rank: RANK })?;
        if step == 0 {
            return Err(ShapeError::Step { axis });
        }
        shape[axis] = extent.div_ceil(step);
        // No neighbour is left where the distance overflows.
        strides[axis] = strides[axis].saturating_mul(if shape[axis] > 1 { step } else { 1 });
        TensorView::with_strides(self.elements(), shape, strides)
    }

    /// The view with the only index of one dimension repeated: a row as the rows of a matrix.
    ///
    /// # Errors
    /// [`ShapeError::Axis`] when there is no such dimension, [`ShapeError::Repeat`] when it has another extent than 1, and
    /// [`ShapeError::TooLarge`] when the shape's product overflows.
    pub fn repeat_along(&self, axis: usize, times: usize) -> Result<Self, ShapeError> {
        let (mut shape, mut strides) = (self.shape(), self.strides());
        match shape.get(axis) {
            None => return Err(ShapeError::Axis { axis, rank: RANK }),
            Some(1) => {}
            Some(_) => return Err(ShapeError::Repeat { axis, shape: shape.to_vec() }),
        }
        (shape[axis], strides[axis]) = (times, 0);
        TensorView::with_strides(self.elements(), shape, strides)
    }

    /// The same elements under another shape, if they lie densely.
    ///
    /// # Errors
    /// [`ShapeError::Length`] when the shapes have different numbers of elements, and [`ShapeError::Gaps`] when the view is not dense.
    pub fn reshape<const OTHER: usize>(
        &self,
        shape: [usize; OTHER],
    ) -> Result<TensorView<'a, T, OTHER>, ShapeError> {
        if !self.is_contiguous() {
            let (shape, strides) = (self.shape().to_vec(), self.strides().to_vec());
            return Err(ShapeError::Gaps { shape, strides });
        }
        TensorView::new(&self.elements()[..self.len()], shape)
    }

    /// The elements from the first to the last one of the view, and the strides where the view is not dense and row-major.
    pub fn memory(&self) -> (&[T], Option<&[usize]>) {
        if let Some(dense) = self.as_slice() {
            return (dense, None);
        }
        let last: usize =
            self.shape().iter().zip(self.strides()).map(|(extent, stride)| (extent - 1) * stride).sum();
        (&self.elements()[..=last], Some(self.strides_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::Tensor;

    fn matrix() -> Tensor<i32, 2> {
        Tensor::from_fn([3, 4], |[i, j]| (10 * i + j) as i32).unwrap()
    }

    fn elements<const RANK: usize>(view: TensorView<'_, i32, RANK>) -> Vec<i32> {
        view.to_tensor().unwrap().into_vec()
    }

    #[test]
    fn views_name_the_same_elements() {
        let matrix = matrix();
        let view = TensorView::from(&matrix);
        let transposed = view.permute([1, 0]).unwrap();
        assert_eq!(transposed.shape(), [4, 3]);
        assert_eq!(transposed[[3, 2]], 23);
        assert_eq!(elements(view.slice_along(1, 1..3).unwrap()), [1, 2, 11, 12, 21, 22]);
        assert_eq!(elements(transposed.slice(1..2).unwrap()), [1, 11, 21]);
        assert_eq!(view.reshape([2, 6]).unwrap()[[1, 5]], 23);
        assert!(matches!(transposed.reshape([12]), Err(ShapeError::Gaps { .. })));
        assert!(matches!(view.reshape([13]), Err(ShapeError::Length { .. })));
        assert_eq!(elements(view.step_along(1, 3).unwrap()), [0, 3, 10, 13, 20, 23]);
        assert_eq!(elements(view.step_along(0, usize::MAX).unwrap()), [0, 1, 2, 3]);
        let row = view.slice(1..2).unwrap();
        assert_eq!(elements(row.repeat_along(0, 2).unwrap()), [10, 11, 12, 13, 10, 11, 12, 13]);
    }

    #[test]
    fn memory_ends_with_the_last_element() {
        let matrix = matrix();
        let columns = TensorView::from(&matrix).slice_along(1, 1..3).unwrap();
        let (memory, strides) = columns.memory();
        assert_eq!((memory, strides), (&matrix.as_slice()[1..11], Some(&[4, 1][..])));
        assert_eq!(TensorView::from(&matrix).memory(), (matrix.as_slice(), None));
        assert_eq!(columns.slice(0..0).unwrap().memory(), (&[][..], None), "an empty view is dense");
    }

    #[test]
    fn what_is_no_view_is_an_error() {
        let matrix = matrix();
        let view = TensorView::from(&matrix);
        let error = |result: Result<TensorView<'_, i32, 2>, ShapeError>| result.unwrap_err().to_string();
        assert_eq!(error(view.permute([0, 0])), "[0, 0] does not name each of 2 dimensions once");
        assert_eq!(
            error(view.slice_along(1, 3..5)),
            "the range 3..5 leaves dimension 1 of a tensor of shape [3, 4]"
        );
        assert_eq!(error(view.slice_along(2, 0..0)), "there is no dimension 2 in a tensor of rank 2");
        assert_eq!(error(view.step_along(0, 0)), "a step of 0 along dimension 0 goes nowhere");
        assert_eq!(
            error(view.repeat_along(0, 2)),
            "dimension 0 of a tensor of shape [3, 4] cannot be repeated: its extent is not 1"
        );
    }
}

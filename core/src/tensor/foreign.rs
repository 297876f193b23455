//! Conversions from and to arrays of the crate `ndarray`, behind the feature `ndarray`.
//!
//! | from | to | copies |
//! |---|---|---|
//! | `Tensor` | `Array` | yes: a tensor's memory is aligned, that of an array is not |
//! | `&ArrayBase` in any layout | `Tensor` | yes |
//! | `&ArrayBase`, transposed or not, whose elements fill their memory | `TensorView` | no |
//! | `&TensorView` | `ArrayView` | no |

use ndarray::{Array, ArrayBase, ArrayView, Data, Dim, Dimension, Ix, ShapeBuilder};

use crate::tensor::{Element, ShapeError, Tensor, TensorView};

/// Why an array and a view cannot name the same elements.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForeignArrayError {
    /// The elements do not fill their memory, or an axis runs backwards.
    #[error(
        "an array of shape {shape:?} with strides {strides:?} does not fill its memory in ascending order; copy it with \
         `Tensor::try_from`"
    )]
    Layout {
        /// The array's shape.
        shape: Vec<usize>,
        /// The distance of neighbours along each axis, in elements.
        strides: Vec<isize>,
    },
    /// `ndarray` refuses the strides of a view.
    #[error("`ndarray` cannot view shape {shape:?} with strides {strides:?}: {reason}")]
    Strides {
        /// The view's shape.
        shape: Vec<usize>,
        /// The distance of neighbours along each dimension, in elements.
        strides: Vec<usize>,
        /// The reason that `ndarray` gives.
        reason: String,
    },
    /// The shape is impossible for a tensor.
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

/// The dimension of `ndarray` with this rank.
type DimOf<const RANK: usize> = Dim<[Ix; RANK]>;

fn shape_of<S, const RANK: usize>(array: &ArrayBase<S, DimOf<RANK>>) -> [usize; RANK]
where
    S: ndarray::RawData,
    DimOf<RANK>: Dimension,
{
    let mut shape = [0; RANK];
    shape.copy_from_slice(array.shape());
    shape
}

impl<T: Element, const RANK: usize> From<Tensor<T, RANK>> for Array<T, DimOf<RANK>>
where
    DimOf<RANK>: Dimension,
    [Ix; RANK]: ndarray::IntoDimension<Dim = DimOf<RANK>>,
{
    fn from(tensor: Tensor<T, RANK>) -> Self {
        let shape = tensor.shape();
        Array::from_shape_vec(shape, tensor.into_vec()).expect("a tensor has as many elements as its shape")
    }
}

impl<T: Element, S: Data<Elem = T>, const RANK: usize> TryFrom<&ArrayBase<S, DimOf<RANK>>> for Tensor<T, RANK>
where
    DimOf<RANK>: Dimension,
{
    type Error = ShapeError;

    /// Copies an array in any layout.
    fn try_from(array: &ArrayBase<S, DimOf<RANK>>) -> Result<Self, ShapeError> {
        let mut elements = array.iter();
        Tensor::from_fn(shape_of(array), |_| *elements.next().expect("as many elements as the shape has"))
    }
}

impl<'a, T: Element, S: Data<Elem = T>, const RANK: usize> TryFrom<&'a ArrayBase<S, DimOf<RANK>>>
    for TensorView<'a, T, RANK>
where
    DimOf<RANK>: Dimension,
{
    type Error = ForeignArrayError;

    /// Views an array whose elements fill their memory: dense ones, and ones with permuted axes.
    fn try_from(array: &'a ArrayBase<S, DimOf<RANK>>) -> Result<Self, ForeignArrayError> {
        let shape = shape_of(array);
        let refuse =
            || ForeignArrayError::Layout { shape: shape.to_vec(), strides: array.strides().to_vec() };
        let elements = array.as_slice_memory_order().ok_or_else(refuse)?;
        let mut strides = [0; RANK];
        for (axis, (stride, given)) in strides.iter_mut().zip(array.strides()).enumerate() {
            // The stride along an axis of extent 1 says nothing.
            *stride = if shape[axis] > 1 { usize::try_from(*given).map_err(|_| refuse())? } else { 0 };
        }
        Ok(TensorView::with_strides(elements, shape, strides)?)
    }
}

impl<'a, T: Element, const RANK: usize> TryFrom<&'a TensorView<'a, T, RANK>> for ArrayView<'a, T, DimOf<RANK>>
where
    DimOf<RANK>: Dimension,
    [Ix; RANK]: ndarray::IntoDimension<Dim = DimOf<RANK>>,
{
    type Error = ForeignArrayError;

    /// The same elements as a view of `ndarray`.
    fn try_from(view: &'a TensorView<'a, T, RANK>) -> Result<Self, ForeignArrayError> {
        let (shape, strides) = (view.shape(), view.strides());
        let (elements, _) = view.memory();
        let arrangement = shape.strides(strides);
        ArrayView::from_shape(arrangement, elements).map_err(|error| ForeignArrayError::Strides {
            shape: shape.to_vec(),
            strides: strides.to_vec(),
            reason: error.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array1, Array2, ArrayView2, Axis, Slice, arr0};

    fn matrix() -> Array2<f32> {
        Array2::from_shape_fn((3, 4), |(i, j)| (10 * i + j) as f32)
    }

    #[test]
    fn arrays_in_any_layout_become_tensors_and_come_back() {
        let array = matrix();
        let tensor = Tensor::try_from(&array).unwrap();
        assert_eq!(tensor[[2, 1]], 21.0);
        assert_eq!(Array2::from(tensor), array);
        let backwards = array.slice_axis(Axis(0), Slice::new(0, None, -1));
        let reversed = backwards.slice_axis(Axis(1), Slice::new(1, None, 2));
        let tensor = Tensor::try_from(&reversed).unwrap();
        assert_eq!(tensor.as_slice(), [21.0, 23.0, 11.0, 13.0, 1.0, 3.0]);
        let scalar = Tensor::try_from(&arr0(7u8)).unwrap();
        assert_eq!(scalar, Tensor::scalar(7u8));
        let empty = Tensor::try_from(&Array2::<f64>::zeros((0, 5))).unwrap();
        assert_eq!(empty.shape(), [0, 5]);
    }

    #[test]
    fn arrays_are_viewed_without_a_copy() {
        let array = matrix();
        let view = TensorView::try_from(&array).unwrap();
        assert_eq!((view.shape(), view.strides()), ([3, 4], [4, 1]));
        let turned = array.t();
        let view = TensorView::try_from(&turned).unwrap();
        assert_eq!((view.shape(), view[[3, 2]]), ([4, 3], 23.0));
        assert!(std::ptr::eq(view.memory().0.as_ptr(), array.as_ptr()));
        let part = array.slice_axis(Axis(1), Slice::from(1..3));
        let error = TensorView::try_from(&part).unwrap_err().to_string();
        assert!(
            error.contains("shape [3, 2] with strides [4, 1]") && error.contains("Tensor::try_from"),
            "{error}"
        );
        let line = Array1::from_vec(vec![1i32, 2, 3]);
        let reversed = line.slice_axis(Axis(0), Slice::new(0, None, -1));
        assert!(matches!(TensorView::try_from(&reversed), Err(ForeignArrayError::Layout { .. })));
    }

    #[test]
    fn views_become_views_of_arrays() {
        let tensor = Tensor::try_from(&matrix()).unwrap();
        let view = TensorView::from(&tensor);
        let turned = view.permute([1, 0]).unwrap();
        let columns = turned.slice(1..3).unwrap();
        let array = ArrayView2::try_from(&columns).unwrap();
        assert_eq!(array, matrix().t().slice_axis(Axis(0), Slice::from(1..3)));
        assert_eq!(array[[1, 2]], 22.0);
    }
}

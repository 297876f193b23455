//! Shapes and what can be wrong with them.

/// Why a shape was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// The elements would not fit into the address space, or the memory could not be had.
    #[error("a tensor of shape {shape:?} with {element_bytes}-byte elements does not fit into memory")]
    TooLarge {
        /// The shape asked for.
        shape: Vec<usize>,
        /// The size of one element, in bytes.
        element_bytes: usize,
    },
    /// The number of elements is not the product of the shape.
    #[error("shape {shape:?} has {expected} elements, but {found} were given")]
    Length {
        /// The shape asked for.
        shape: Vec<usize>,
        /// The product of the shape.
        expected: usize,
        /// How many elements came.
        found: usize,
    },
    /// The farthest element of a strided view lies outside its slice.
    #[error(
        "a view of shape {shape:?} with strides {strides:?} reaches past the {found} elements of its slice"
    )]
    Strides {
        /// The shape asked for.
        shape: Vec<usize>,
        /// The distance of neighbours along each dimension, in elements.
        strides: Vec<usize>,
        /// How many elements the slice has.
        found: usize,
    },
    /// Two indices of a writable view would name one element.
    #[error("a writable view of shape {shape:?} with strides {strides:?} would hold one element twice")]
    Overlap {
        /// The shape asked for.
        shape: Vec<usize>,
        /// The distance of neighbours along each dimension, in elements.
        strides: Vec<usize>,
    },
    /// A range of indices leaves a dimension.
    #[error("the range {start}..{end} leaves dimension {axis} of a tensor of shape {shape:?}")]
    Range {
        /// The tensor's shape.
        shape: Vec<usize>,
        /// The dimension, from 0.
        axis: usize,
        /// The first index.
        start: usize,
        /// One past the last index.
        end: usize,
    },
    /// A dimension that a tensor does not have.
    #[error("there is no dimension {axis} in a tensor of rank {rank}")]
    Axis {
        /// The dimension asked for, from 0.
        axis: usize,
        /// The tensor's rank.
        rank: usize,
    },
    /// A dimension that is to be repeated has not one index.
    #[error("dimension {axis} of a tensor of shape {shape:?} cannot be repeated: its extent is not 1")]
    Repeat {
        /// The dimension, from 0.
        axis: usize,
        /// The tensor's shape.
        shape: Vec<usize>,
    },
    /// A view that is not dense cannot have another shape.
    #[error(
        "a view of shape {shape:?} with strides {strides:?} has no other shape; copy it with `TensorView::to_tensor` first"
    )]
    Gaps {
        /// The view's shape.
        shape: Vec<usize>,
        /// The distance of neighbours along each dimension, in elements.
        strides: Vec<usize>,
    },
    /// A step of 0 between indices.
    #[error("a step of 0 along dimension {axis} goes nowhere")]
    Step {
        /// The dimension, from 0.
        axis: usize,
    },
    /// An order of dimensions that leaves one out.
    #[error("{order:?} does not name each of {rank} dimensions once")]
    Order {
        /// The order asked for.
        order: Vec<usize>,
        /// The tensor's rank.
        rank: usize,
    },
    /// The rank or element type of a dynamically typed tensor is another.
    #[error("expected a tensor of {expected}, found one of {found}")]
    Type {
        /// Element type and rank asked for.
        expected: String,
        /// Element type and shape found.
        found: String,
    },
}

/// The number of elements of a shape, when they fit into the address space.
///
/// Extents are checked as if zeros were ones, so that whether a shape is legal does not depend on
/// another dimension being empty.
///
/// # Errors
/// [`ShapeError::TooLarge`] when they do not.
pub fn checked_len(shape: &[usize], element_bytes: usize) -> Result<usize, ShapeError> {
    let too_large = || ShapeError::TooLarge { shape: shape.to_vec(), element_bytes };
    let bytes = shape
        .iter()
        .try_fold(element_bytes, |product, &extent| product.checked_mul(extent.max(1)))
        .ok_or_else(too_large)?;
    if isize::try_from(bytes).is_err() {
        return Err(too_large());
    }
    Ok(shape.iter().product())
}

/// The strides of a dense, row-major tensor, in elements.
pub(crate) fn dense_strides<const RANK: usize>(shape: &[usize; RANK]) -> [usize; RANK] {
    let mut strides = [1; RANK];
    for dimension in (1..RANK).rev() {
        strides[dimension - 1] = strides[dimension] * shape[dimension].max(1);
    }
    strides
}

/// The position of an element, or `None` when the index lies outside the shape.
#[inline]
pub(crate) fn position<const RANK: usize>(
    index: &[usize; RANK],
    shape: &[usize; RANK],
    strides: &[usize; RANK],
) -> Option<usize> {
    let mut position = 0;
    for dimension in 0..RANK {
        if index[dimension] >= shape[dimension] {
            return None;
        }
        position += index[dimension] * strides[dimension];
    }
    Some(position)
}

/// The index after `index` in row-major order; wraps to zeros after the last one.
pub(crate) fn advance(index: &mut [usize], shape: &[usize]) {
    for dimension in (0..shape.len()).rev() {
        index[dimension] += 1;
        if index[dimension] < shape[dimension] {
            return;
        }
        index[dimension] = 0;
    }
}

/// Panics with a message that names the index and the shape.
#[cold]
#[track_caller]
pub(crate) fn index_panic(index: &[usize], shape: &[usize]) -> ! {
    panic!("index {index:?} is outside a tensor of shape {shape:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_products() {
        assert_eq!(checked_len(&[], 8), Ok(1));
        assert_eq!(checked_len(&[2, 0, 3], 4), Ok(0));
        assert_eq!(checked_len(&[2, 5, 3], 4), Ok(30));
    }

    #[test]
    fn overflow_is_an_error_that_names_the_shape() {
        for shape in [vec![usize::MAX, 2], vec![1 << 40, 1 << 40], vec![usize::MAX, 0, 2], vec![1 << 62]] {
            let error = checked_len(&shape, 4).unwrap_err();
            assert!(error.to_string().contains(&format!("{shape:?}")), "{error}");
        }
    }

    #[test]
    fn advancing_enumerates_in_row_major_order() {
        let mut index = [0, 0];
        let mut seen = Vec::new();
        for _ in 0..6 {
            seen.push(index);
            advance(&mut index, &[2, 3]);
        }
        assert_eq!(seen, [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]);
        assert_eq!(index, [0, 0]);
    }
}

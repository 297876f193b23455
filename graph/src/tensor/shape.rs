//! Shapes of host tensors: sizes, strides, broadcasting, and walking through all places.

use tilewright_core::tensor::SourceError;

use crate::tensor::ElementType;

/// Why a tensor cannot be made or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TensorError {
    /// The number of elements does not fit the shape.
    #[error("shape {shape:?} has {expected} elements, found {found}")]
    Length {
        /// The shape.
        shape: Vec<usize>,
        /// How many elements it has.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// The elements do not fit into memory.
    #[error("a tensor of shape {shape:?} does not fit into memory")]
    TooLarge {
        /// The shape.
        shape: Vec<usize>,
    },
    /// The elements are of another type.
    #[error("expected elements of type {expected}, found {found}")]
    Element {
        /// The type, or the kind of types, that was asked for.
        expected: &'static str,
        /// The type of the tensor.
        found: ElementType,
    },
    /// The elements lie in a file that cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Two shapes do not broadcast.
    #[error(
        "shapes {left:?} and {right:?} do not broadcast: dimensions must be equal or 1, counted from the last"
    )]
    Broadcast {
        /// One shape.
        left: Vec<usize>,
        /// The other.
        right: Vec<usize>,
    },
}

/// The number of elements of a shape.
///
/// # Errors
/// [`TensorError::TooLarge`] when elements of one byte would not fit into the address space.
pub fn count(shape: &[usize]) -> Result<usize, TensorError> {
    if shape.contains(&0) {
        return Ok(0);
    }
    let product = shape.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent));
    product
        .filter(|&product| product <= isize::MAX as usize)
        .ok_or_else(|| TensorError::TooLarge { shape: shape.to_vec() })
}

/// How far elements that are neighbours in each dimension lie apart.
pub fn row_major_strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for dimension in (1..shape.len()).rev() {
        strides[dimension - 1] = strides[dimension] * shape[dimension].max(1);
    }
    strides
}

/// The shape to which both shapes broadcast: aligned at the last dimension, where extents are equal or one of them is 1.
///
/// # Errors
/// [`TensorError::Broadcast`] when there is none.
pub fn broadcast_shapes(left: &[usize], right: &[usize]) -> Result<Vec<usize>, TensorError> {
    let rank = left.len().max(right.len());
    let extent = |shape: &[usize], dimension: usize| {
        (dimension + shape.len()).checked_sub(rank).map_or(1, |dimension| shape[dimension])
    };
    let broadcast = |dimension| match (extent(left, dimension), extent(right, dimension)) {
        (a, b) if a == b => Ok(a),
        (1, b) => Ok(b),
        (a, 1) => Ok(a),
        _ => Err(TensorError::Broadcast { left: left.to_vec(), right: right.to_vec() }),
    };
    (0..rank).map(broadcast).collect()
}

/// All places of a shape in row-major order, each as the offset that strides give it.
///
/// With strides of 0 where an operand has extent 1, this is broadcasting; with permuted strides, a transposition.
pub struct Places {
    shape: Vec<usize>,
    strides: Vec<usize>,
    place: Vec<usize>,
    offset: usize,
    left: usize,
}

impl Places {
    /// Walks through `shape`; a step in dimension `d` changes the offset by `strides[d]`.
    pub fn new(shape: &[usize], strides: Vec<usize>) -> Self {
        let left = if shape.contains(&0) { 0 } else { shape.iter().product() };
        Places { shape: shape.to_vec(), strides, place: vec![0; shape.len()], offset: 0, left }
    }

    /// Walks through `shape` and gives the offsets in an operand of shape `operand` that broadcasts to it.
    pub fn broadcast(shape: &[usize], operand: &[usize]) -> Self {
        let own = row_major_strides(operand);
        let missing = shape.len() - operand.len();
        let stride = |dimension: usize| match dimension.checked_sub(missing) {
            Some(own_dimension) if operand[own_dimension] != 1 => own[own_dimension],
            _ => 0,
        };
        Places::new(shape, (0..shape.len()).map(stride).collect())
    }
}

impl Iterator for Places {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let offset = self.offset;
        for dimension in (0..self.shape.len()).rev() {
            self.place[dimension] += 1;
            self.offset += self.strides[dimension];
            if self.place[dimension] < self.shape[dimension] {
                break;
            }
            self.offset -= self.strides[dimension] * self.shape[dimension];
            self.place[dimension] = 0;
        }
        Some(offset)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_broadcast_from_the_last_dimension() {
        assert_eq!(broadcast_shapes(&[2, 1, 3], &[4, 1]).unwrap(), [2, 4, 3]);
        assert_eq!(broadcast_shapes(&[], &[0]).unwrap(), [0]);
        assert!(broadcast_shapes(&[2], &[3]).is_err());
    }

    #[test]
    fn places_repeat_what_is_broadcast() {
        let offsets: Vec<usize> = Places::broadcast(&[2, 3], &[2, 1]).collect();
        assert_eq!(offsets, [0, 0, 0, 1, 1, 1]);
        let transposed: Vec<usize> = Places::new(&[3, 2], vec![1, 3]).collect();
        assert_eq!(transposed, [0, 3, 1, 4, 2, 5]);
        assert_eq!(Places::broadcast(&[], &[]).count(), 1);
        assert_eq!(Places::broadcast(&[2, 0], &[1, 1]).count(), 0);
    }

    #[test]
    fn impossible_shapes_are_errors() {
        assert!(count(&[usize::MAX, 2]).is_err());
        assert_eq!(count(&[usize::MAX, 2, 0]).unwrap(), 0);
    }
}

//! Tensors as lanes along one dimension.

use crate::operator::Fault;
use crate::tensor::{Element, HostTensor};

/// How the lanes along one dimension lie in a row-major tensor.
#[derive(Clone, Copy)]
pub(super) struct Lanes {
    /// The number of lanes for each place of the dimensions outside, one after the other.
    pub(super) inner: usize,
    /// The number of elements of a lane.
    pub(super) length: usize,
    /// The number of places of the dimensions outside.
    pub(super) outer: usize,
}

impl Lanes {
    /// The lanes of a shape along a dimension.
    pub(super) fn along(shape: &[usize], axis: usize) -> Self {
        Lanes {
            inner: shape[axis + 1..].iter().product(),
            length: shape[axis],
            outer: shape[..axis].iter().product(),
        }
    }

    /// For every lane the offset of its first element.
    pub(super) fn starts(self) -> impl Iterator<Item = usize> {
        (0..self.outer)
            .flat_map(move |outer| (0..self.inner).map(move |inner| outer * self.length * self.inner + inner))
    }

    /// The offsets of the elements of the lane that starts at `start`.
    pub(super) fn places(self, start: usize) -> impl Iterator<Item = usize> + Clone {
        (0..self.length).map(move |place| start + place * self.inner)
    }
}

/// Replaces each lane along a dimension by what a function makes of it. All results must be of length `length`.
pub(super) fn map_lanes<T: Element, R: Element>(
    tensor: &HostTensor,
    axis: usize,
    length: usize,
    function: impl Fn(&[T]) -> Result<Vec<R>, Fault>,
) -> Result<HostTensor, Fault> {
    map_lanes_by(tensor, axis, length, &function)
}

/// The function that makes a lane of the result from one of the tensor.
type Map<'f, T, R> = &'f dyn Fn(&[T]) -> Result<Vec<R>, Fault>;

/// As [`map_lanes`], compiled once for all functions.
fn map_lanes_by<T: Element, R: Element>(
    tensor: &HostTensor,
    axis: usize,
    length: usize,
    function: Map<'_, T, R>,
) -> Result<HostTensor, Fault> {
    let elements = tensor.expect::<T>()?;
    let lanes = Lanes::along(tensor.shape(), axis);
    let results = Lanes { length, ..lanes };
    let mut shape = tensor.shape().to_vec();
    shape[axis] = length;
    let mut mapped = vec![R::default(); crate::tensor::count(&shape)?];
    for (start, result_start) in lanes.starts().zip(results.starts()) {
        let lane: Vec<T> = lanes.places(start).map(|place| elements[place].clone()).collect();
        for (place, value) in results.places(result_start).zip(function(&lane)?) {
            mapped[place] = value;
        }
    }
    Ok(HostTensor::new(&shape, mapped)?)
}

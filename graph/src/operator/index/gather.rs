//! Reading places that other tensors name.

use crate::deduce;
use crate::legalise::{place, select};
use crate::operator::attribute::IntOr;
use crate::operator::evaluate::{axis, one, refuse};
use crate::operator::index::place as position;
use crate::operator::lanes::Lanes;
use crate::operator::select::take;
use crate::operator::{Arguments, Fault, Operator, Value};
use crate::tensor::{Places, row_major_strides};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("gather", "Gather", gather)
        .legalise(select::gather)
        .deduce(deduce::gather)
        .inputs(2, 2)
        .attributes(&[("axis", IntOr(0))]),
    Operator::new("gather_elements", "GatherElements", gather_elements)
        .legalise(place::gather_elements)
        .deduce(deduce::gather_like_indices)
        .inputs(2, 2)
        .attributes(&[("axis", IntOr(0))]),
    Operator::new("gather_nd", "GatherND", gather_nd)
        .legalise(place::gather_nd)
        .deduce(deduce::gather_nd)
        .inputs(2, 2)
        .attributes(&[("batch_dims", IntOr(0))]),
];

fn gather(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let (x, indices) = (arguments.tensor(0)?, arguments.tensor(1)?);
    let dimension = axis(arguments.int_or_default("axis"), x.rank())?;
    let numbers = arguments.integers(1)?;
    let places = numbers
        .iter()
        .map(|&number| position(number, x.shape()[dimension]))
        .collect::<Result<Vec<_>, _>>()?;
    let lanes = Lanes::along(x.shape(), dimension);
    let (outer, inner) = (&x.shape()[..dimension], &x.shape()[dimension + 1..]);
    let shape: Vec<usize> = outer.iter().chain(indices.shape()).chain(inner).copied().collect();
    let offsets = (0..lanes.outer).flat_map(|outer| {
        let start = move |&place: &usize| (outer * lanes.length + place) * lanes.inner;
        places.iter().map(start).flat_map(|start| start..start + lanes.inner)
    });
    one(take(x, &shape, offsets)?)
}

fn gather_elements(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let (x, indices) = (arguments.tensor(0)?, arguments.tensor(1)?);
    let dimension = axis(arguments.int_or_default("axis"), x.rank())?;
    let offsets = element_places(x.shape(), indices.shape(), &arguments.integers(1)?, dimension)?;
    one(take(x, indices.shape(), offsets.into_iter())?)
}

/// For each place of an index tensor the offset of the element that it names: its own place, with the index along
/// `dimension`.
pub(super) fn element_places(
    shape: &[usize],
    index_shape: &[usize],
    numbers: &[i64],
    dimension: usize,
) -> Result<Vec<usize>, Fault> {
    let fits = index_shape.len() == shape.len()
        && (0..shape.len()).all(|other| other == dimension || index_shape[other] <= shape[other]);
    if !fits {
        refuse!("indices of shape {index_shape:?} do not fit a tensor of shape {shape:?}");
    }
    let mut strides = row_major_strides(shape);
    let stride = std::mem::replace(&mut strides[dimension], 0);
    let offsets = Places::new(index_shape, strides).zip(numbers);
    offsets.map(|(offset, &number)| Ok(offset + position(number, shape[dimension])? * stride)).collect()
}

fn gather_nd(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let (x, indices) = (arguments.tensor(0)?, arguments.tensor(1)?);
    let batch = usize::try_from(arguments.int_or_default("batch_dims")).unwrap_or(usize::MAX);
    let Some((&depth, index_outer)) = indices.shape().split_last() else {
        refuse!("indices must have a dimension")
    };
    if batch > index_outer.len() || batch + depth > x.rank() || x.shape()[..batch] != indices.shape()[..batch]
    {
        refuse!("indices of shape {:?} do not fit a tensor of shape {:?}", indices.shape(), x.shape());
    }
    let inner = &x.shape()[batch + depth..];
    let run: usize = inner.iter().product();
    let per_batch: usize = index_outer[batch..].iter().product();
    let batch_size: usize = x.shape()[batch..].iter().product();
    let starts = slice_starts(&x.shape()[batch..], &arguments.integers(1)?, depth)?;
    let offsets = starts.into_iter().enumerate().flat_map(|(row, start)| {
        let start = row / per_batch.max(1) * batch_size + start;
        start..start + run
    });
    let shape: Vec<usize> = index_outer.iter().chain(inner).copied().collect();
    let rows: usize = index_outer.iter().product();
    if depth == 0 {
        return one(take(x, &shape, (0..rows).flat_map(|_| 0..run))?);
    }
    one(take(x, &shape, offsets)?)
}

/// For each row of indices, of `depth` numbers each, the offset of the slice that they name.
pub(super) fn slice_starts(shape: &[usize], numbers: &[i64], depth: usize) -> Result<Vec<usize>, Fault> {
    if depth == 0 {
        return Ok(Vec::new());
    }
    let strides = row_major_strides(shape);
    let start = |row: &[i64]| {
        row.iter().enumerate().try_fold(0, |offset, (dimension, &number)| {
            Ok::<_, Fault>(offset + position(number, shape[dimension])? * strides[dimension])
        })
    };
    numbers.chunks_exact(depth).map(start).collect()
}

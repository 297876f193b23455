//! Moving elements: each place of a result takes an element of one place of a tensor.

use crate::operator::Fault;
use crate::tensor::{Element, HostTensor, Places, count, row_major_strides, with_elements};

/// A tensor whose elements are those at given offsets, in row-major order of `shape`.
pub(super) fn take(
    tensor: &HostTensor,
    shape: &[usize],
    offsets: impl Iterator<Item = usize>,
) -> Result<HostTensor, Fault> {
    fn pick<T: Element>(values: &[T], offsets: impl Iterator<Item = usize>) -> Vec<T> {
        offsets.map(|offset| values[offset].clone()).collect()
    }
    Ok(with_elements!(tensor.elements(), values => HostTensor::new(shape, pick(values, offsets))?))
}

/// A tensor whose places along each dimension are chosen by a table of that dimension: the source's place, or `None` for
/// the fill value. Slices, padding and repetition are such tables.
///
/// # Panics
/// When a table names a place outside the tensor.
pub(super) fn choose(
    tensor: &HostTensor,
    tables: &[Vec<Option<usize>>],
    fill: Option<&HostTensor>,
) -> Result<HostTensor, Fault> {
    let shape: Vec<usize> = tables.iter().map(Vec::len).collect();
    let offsets = choose_offsets(tensor.shape(), tables, count(&shape)?);
    fn pick<T: Element>(
        values: &[T],
        shape: &[usize],
        offsets: &[Option<usize>],
        fill: Option<&HostTensor>,
    ) -> Result<HostTensor, Fault> {
        let fill = match fill {
            None => T::default(),
            Some(fill) => match fill.expect::<T>()? {
                [value] => value.clone(),
                other => {
                    return Err(Fault(format!(
                        "the fill value must have one element, it has {}",
                        other.len()
                    )));
                }
            },
        };
        let element =
            |offset: &Option<usize>| offset.map_or_else(|| fill.clone(), |offset| values[offset].clone());
        Ok(HostTensor::new(shape, offsets.iter().map(element).collect())?)
    }
    with_elements!(tensor.elements(), values => pick(values, &shape, &offsets, fill))
}

/// The offsets that tables choose, in row-major order.
fn choose_offsets(source: &[usize], tables: &[Vec<Option<usize>>], total: usize) -> Vec<Option<usize>> {
    let strides = row_major_strides(source);
    let mut offsets = Vec::with_capacity(total);
    offsets.push(Some(0));
    for (table, stride) in tables.iter().zip(strides) {
        let extend = |offset: &Option<usize>| {
            let offset = *offset;
            table.iter().map(move |place| Some(offset? + (*place)? * stride)).collect::<Vec<_>>()
        };
        offsets = offsets.iter().flat_map(extend).collect();
    }
    offsets
}

/// A table that keeps a dimension as it is.
pub(super) fn everything(extent: usize) -> Vec<Option<usize>> {
    (0..extent).map(Some).collect()
}

/// The tensor with its dimensions in another order.
pub(super) fn transpose(tensor: &HostTensor, order: &[usize]) -> Result<HostTensor, Fault> {
    let own = row_major_strides(tensor.shape());
    let shape: Vec<usize> = order.iter().map(|&dimension| tensor.shape()[dimension]).collect();
    let strides = order.iter().map(|&dimension| own[dimension]).collect();
    take(tensor, &shape, Places::new(&shape, strides))
}

/// One place of a dimension, without that dimension.
pub(crate) fn slice_at(tensor: &HostTensor, dimension: usize, place: usize) -> Result<HostTensor, Fault> {
    let mut shape = tensor.shape().to_vec();
    shape.remove(dimension);
    let mut strides = row_major_strides(tensor.shape());
    let first = place * strides.remove(dimension);
    take(tensor, &shape, Places::new(&shape, strides).map(|offset| first + offset))
}

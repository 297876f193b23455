//! Slices and other parts of tensors.

use crate::deduce;
use crate::legalise::{place, select};
use crate::operator::attribute::{Int, IntOr, Ints};
use crate::operator::evaluate::{axis, one, refuse};
use crate::operator::select::{choose, everything};
use crate::operator::{Arguments, Fault, Operator, Value};
use crate::tensor::{HostTensor, Places, with_element};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("slice", "Slice", slice).legalise(select::slice).deduce(deduce::slice).inputs(3, 5),
    Operator::new("trilu", "Trilu", trilu)
        .legalise(place::triangle)
        .deduce(deduce::same)
        .inputs(1, 2)
        .attributes(&[("upper", IntOr(1))]),
    Operator::new("compress", "Compress", compress)
        .deduce(deduce::compress)
        .inputs(2, 2)
        .attributes(&[("axis", Int)]),
    Operator::new("center_crop_pad", "CenterCropPad", center_crop_pad)
        .deduce(deduce::element_only)
        .inputs(2, 2)
        .attributes(&[("axes", Ints)]),
    Operator::new("reverse_sequence", "ReverseSequence", reverse_sequence)
        .legalise(place::reverse_sequence)
        .deduce(deduce::same)
        .inputs(2, 2)
        .attributes(&[("batch_axis", IntOr(1)), ("time_axis", IntOr(0))]),
];

/// The places of a slice: bounds count from the end when negative, and are clamped. Each is given.
pub fn slice_places(start: i64, end: i64, step: i64, extent: usize) -> Vec<Option<usize>> {
    let signed = extent as i64;
    let absolute = |number: i64| if number < 0 { number.saturating_add(signed) } else { number };
    let (low, high) = if step > 0 { (0, signed) } else { (-1, signed - 1) };
    let (start, end) =
        (absolute(start).clamp(low.max(0).min(high), high.max(low)), absolute(end).clamp(low, high));
    let mut places = Vec::new();
    let mut place = start;
    while if step > 0 { place < end } else { place > end } {
        places.push(Some(place as usize));
        place = place.saturating_add(step);
    }
    places
}

fn slice(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let (starts, ends) = (arguments.integers(1)?, arguments.integers(2)?);
    let axes = arguments.optional_integers(3)?.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = arguments.optional_integers(4)?.unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), axes.len(), steps.len()].iter().any(|&length| length != starts.len()) {
        refuse!("starts {starts:?}, ends {ends:?}, axes {axes:?} and steps {steps:?} must have one length");
    }
    let mut tables: Vec<_> = x.shape().iter().map(|&extent| everything(extent)).collect();
    for (((&start, &end), &number), &step) in starts.iter().zip(&ends).zip(&axes).zip(&steps) {
        if step == 0 {
            refuse!("the step of a slice must not be zero");
        }
        let dimension = axis(number, x.rank())?;
        tables[dimension] = slice_places(start, end, step, x.shape()[dimension]);
    }
    one(choose(x, &tables, None)?)
}

/// The upper or lower triangles of matrices, with zeros elsewhere.
fn trilu(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let k = arguments.optional_integer(1)?.unwrap_or(0);
    let upper = arguments.flag("upper");
    let &[.., rows, columns] = x.shape() else { refuse!("expected matrices, found shape {:?}", x.shape()) };
    with_element!(x.element(), T => {
        let element = |(place, value): (usize, &T)| {
            let (row, column) = ((place / columns % rows) as i64, (place % columns) as i64);
            let beyond = column - row >= k;
            let kept = if upper { beyond } else { !beyond || column - row == k };
            if kept { value.clone() } else { T::default() }
        };
        one(HostTensor::new(x.shape(), x.expect::<T>()?.iter().enumerate().map(element).collect())?)
    })
}

fn compress(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let condition = arguments.slice::<bool>(1)?;
    let flat = x.reshape(&[x.len()])?;
    let (x, dimension) = match arguments.int("axis") {
        None => (&flat, 0),
        Some(number) => (x, axis(number, x.rank())?),
    };
    if condition.len() > x.shape()[dimension] {
        refuse!(
            "a condition of length {} is longer than the dimension, {}",
            condition.len(),
            x.shape()[dimension]
        );
    }
    let mut tables: Vec<_> = x.shape().iter().map(|&extent| everything(extent)).collect();
    tables[dimension] = (0..condition.len()).filter(|&place| condition[place]).map(Some).collect();
    one(choose(x, &tables, None)?)
}

/// The middle of each dimension, or the dimension in the middle of zeros. Of an odd difference the end gets one more.
fn center_crop_pad(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let wanted = arguments.integers(1)?;
    let all: Vec<i64> = (0..x.rank() as i64).collect();
    let axes = arguments.ints("axes").unwrap_or(&all);
    if axes.len() != wanted.len() {
        refuse!("a shape of {} extents does not fit {} axes", wanted.len(), axes.len());
    }
    let mut tables: Vec<_> = x.shape().iter().map(|&extent| everything(extent)).collect();
    for (&number, &wanted) in axes.iter().zip(&wanted) {
        let dimension = axis(number, x.rank())?;
        let extent = x.shape()[dimension] as i64;
        if wanted < 0 || usize::try_from(wanted).is_err() {
            refuse!("{wanted} is no extent");
        }
        let first = if wanted < extent { (extent - wanted) / 2 } else { -((wanted - extent) / 2) };
        let table = |place: i64| usize::try_from(place).ok().filter(|_| place < extent);
        tables[dimension] = (first..first + wanted).map(table).collect();
    }
    one(choose(x, &tables, None)?)
}

/// Turns round the first elements of each sequence of a batch, as many as its length says.
fn reverse_sequence(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let lengths = arguments.integers(1)?;
    let batch = axis(arguments.int_or_default("batch_axis"), x.rank())?;
    let time = axis(arguments.int_or_default("time_axis"), x.rank())?;
    let (batches, steps) = (x.shape()[batch], x.shape()[time]);
    if lengths.len() != batches || lengths.iter().any(|&length| length < 0 || length > steps as i64) {
        refuse!("lengths {lengths:?} do not fit {batches} sequences of {steps} steps");
    }
    let strides = crate::tensor::row_major_strides(x.shape());
    let offsets = Places::broadcast(x.shape(), x.shape()).map(|offset| {
        let (sequence, step) = (offset / strides[batch] % batches, offset / strides[time] % steps);
        let length = lengths[sequence] as usize;
        let source = if step < length { length - 1 - step } else { step };
        offset - step * strides[time] + source * strides[time]
    });
    one(crate::operator::select::take(x, x.shape(), offsets)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(start: i64, end: i64, step: i64, extent: usize) -> Vec<usize> {
        slice_places(start, end, step, extent).into_iter().flatten().collect()
    }

    #[test]
    fn bounds_of_slices_are_clamped() {
        assert_eq!(places(1, i64::MAX, 2, 6), [1, 3, 5]);
        assert_eq!(places(-1, i64::MIN, -1, 3), [2, 1, 0]);
        assert_eq!(places(i64::MAX, 0, -2, 6), [5, 3, 1]);
        assert_eq!(places(4, 2, 1, 6), [0usize; 0]);
        assert_eq!(places(0, -1, -1, 0), [0usize; 0]);
        assert_eq!(places(i64::MIN, i64::MAX, i64::MAX, 6), [0]);
        assert_eq!(places(-100, 100, -1, 4), [0usize; 0]);
    }
}

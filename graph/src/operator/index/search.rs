//! Results whose size depends on the data, and orders.

use std::cmp::Ordering;

use crate::deduce;
use crate::operator::attribute::{Int, IntOr};
use crate::operator::evaluate::{axis, one, refuse};
use crate::operator::lanes::{Lanes, map_lanes};
use crate::operator::select::transpose;
use crate::operator::{Arguments, Fault, Operator, Value};
use crate::tensor::{Element, HostTensor, with_element, with_number};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("non_zero", "NonZero", non_zero).deduce(deduce::non_zero),
    Operator::new("top_k", "TopK", top_k).deduce(deduce::top_k).inputs(2, 2).outputs(2, 2).attributes(&[
        ("axis", IntOr(-1)),
        ("largest", IntOr(1)),
        ("sorted", IntOr(1)),
    ]),
    Operator::new("unique", "Unique", unique)
        .outputs(1, 4)
        .attributes(&[("axis", Int), ("sorted", IntOr(1))]),
];

/// The coordinates of all elements that are not zero, one column each. A scalar has no coordinates.
fn non_zero(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let offsets: Vec<usize> = with_element!(x.element(), T => {
        let elements = x.expect::<T>()?;
        (0..elements.len()).filter(|&offset| elements[offset] != T::default()).collect()
    });
    let strides = crate::tensor::row_major_strides(x.shape());
    let coordinates = strides
        .iter()
        .zip(x.shape())
        .flat_map(|(stride, extent)| offsets.iter().map(move |offset| (offset / stride % extent) as i64));
    one(HostTensor::new(&[x.rank(), offsets.len()], coordinates.collect())?)
}

/// The largest or smallest elements along a dimension, in order, with their places. Of equal elements the first comes
/// first.
fn top_k(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let dimension = axis(arguments.int_or_default("axis"), x.rank())?;
    let largest = arguments.flag("largest");
    let k = match arguments.optional_integer(1)?.map(usize::try_from) {
        Some(Ok(k)) if k <= x.shape()[dimension] => k,
        _ => refuse!("k must be one number from 0 to the dimension's extent, {}", x.shape()[dimension]),
    };
    with_number!(x.element(), T => {
        let places = map_lanes::<T, i64>(x, dimension, k, |lane| Ok(first_places(lane, k, largest)))?;
        let (from, to) = (Lanes::along(x.shape(), dimension), Lanes::along(places.shape(), dimension));
        let (elements, chosen) = (x.expect::<T>()?, places.expect::<i64>()?);
        let mut values = vec![T::default(); chosen.len()];
        for (start, result) in from.starts().zip(to.starts()) {
            for place in to.places(result) {
                values[place] = elements[start + chosen[place] as usize * from.inner];
            }
        }
        Ok(vec![HostTensor::new(places.shape(), values)?.into(), places.into()])
    }, else refuse!("expected numbers, found {}", x.element()))
}

/// The places of the `k` largest or smallest elements, in their order.
fn first_places<T: PartialOrd>(lane: &[T], k: usize, largest: bool) -> Vec<i64> {
    let compare = |&a: &usize, &b: &usize| {
        let order = total_order(&lane[a], &lane[b]);
        (if largest { order.reverse() } else { order }).then(a.cmp(&b))
    };
    let mut places: Vec<usize> = (0..lane.len()).collect();
    if 0 < k && k < places.len() {
        places.select_nth_unstable_by(k - 1, compare);
    }
    places.truncate(k);
    places.sort_unstable_by(compare);
    places.into_iter().map(|place| place as i64).collect()
}

/// An order of all elements: what is no number comes last.
fn total_order<T: PartialOrd>(a: &T, b: &T) -> Ordering {
    let is_no_number = |x: &T| x.partial_cmp(x).is_none();
    a.partial_cmp(b).unwrap_or_else(|| is_no_number(a).cmp(&is_no_number(b)))
}

/// Different elements, or different slices along a dimension; where each occurs first, which of them each place holds,
/// and how often each occurs.
fn unique(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let (rows, dimension) = match arguments.int("axis") {
        None => (x.reshape(&[x.len(), 1])?, None),
        Some(number) => {
            let dimension = axis(number, x.rank())?;
            let mut order: Vec<usize> = (0..x.rank()).collect();
            order.remove(dimension);
            order.insert(0, dimension);
            (transpose(x, &order)?, Some(dimension))
        }
    };
    let sorted = arguments.flag("sorted");
    let count = rows.shape()[0];
    let run = rows.len().checked_div(count).unwrap_or(0);
    let found = with_element!(rows.element(), T => find_unique(rows.expect::<T>()?, count, run, sorted));
    let offsets = found.first.iter().flat_map(|&row| row * run..(row + 1) * run);
    let mut shape = rows.shape().to_vec();
    shape[0] = found.first.len();
    let chosen = crate::operator::select::take(&rows, &shape, offsets)?;
    let values = match dimension {
        None => chosen.reshape(&[found.first.len()])?,
        Some(dimension) => {
            let mut order: Vec<usize> = (1..x.rank()).collect();
            order.insert(dimension, 0);
            transpose(&chosen, &order)?
        }
    };
    let numbers =
        |numbers: &[usize]| HostTensor::vector(numbers.iter().map(|&number| number as i64).collect()).into();
    Ok(vec![values.into(), numbers(&found.first), numbers(&found.inverse), numbers(&found.counts)])
}

struct Unique {
    /// The first row of each kind.
    first: Vec<usize>,
    /// For each row its kind.
    inverse: Vec<usize>,
    /// The number of rows of each kind.
    counts: Vec<usize>,
}

fn find_unique<T: Element>(elements: &[T], count: usize, run: usize, sorted: bool) -> Unique {
    let row = |row: usize| &elements[row * run..(row + 1) * run];
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&a, &b| {
        let orders = row(a).iter().zip(row(b)).map(|(a, b)| total_order(a, b));
        orders.fold(Ordering::Equal, Ordering::then)
    });
    let mut kinds: Vec<Vec<usize>> = Vec::new();
    for place in order {
        match kinds.last_mut() {
            Some(kind) if row(kind[0]) == row(place) => kind.push(place),
            _ => kinds.push(vec![place]),
        }
    }
    if !sorted {
        kinds.sort_by_key(|kind| kind[0]);
    }
    let mut inverse = vec![0; count];
    for (number, kind) in kinds.iter().enumerate() {
        kind.iter().for_each(|&place| inverse[place] = number);
    }
    Unique {
        first: kinds.iter().map(|kind| kind[0]).collect(),
        inverse,
        counts: kinds.iter().map(Vec::len).collect(),
    }
}

//! Results whose size depends on the data, and orders.

use std::cmp::Ordering;

use crate::deduce;
use crate::operator::attribute::{Int, IntOr};
use crate::operator::evaluate::{axis, one, refuse};
use crate::operator::lanes::map_lanes;
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
        let order = |lane: &[T]| {
            let mut places: Vec<usize> = (0..lane.len()).collect();
            places.sort_by(|&a, &b| {
                let order = lane[a].partial_cmp(&lane[b]).unwrap_or(Ordering::Equal);
                if largest { order.reverse() } else { order }
            });
            places.truncate(k);
            places
        };
        let values = map_lanes::<T, T>(x, dimension, k, |lane| Ok(order(lane).into_iter().map(|at| lane[at]).collect()))?;
        let places =
            map_lanes::<T, i64>(x, dimension, k, |lane| Ok(order(lane).into_iter().map(|at| at as i64).collect()))?;
        Ok(vec![values.into(), places.into()])
    }, else refuse!("expected numbers, found {}", x.element()))
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
    order.sort_by(|&a, &b| row(a).partial_cmp(row(b)).unwrap_or(Ordering::Equal));
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

//! One tensor of several, and several of one.

use crate::deduce;
use crate::legalise::rearrange;
use crate::operator::attribute::{Int, IntOr};
use crate::operator::evaluate::{axis, one, refuse};
use crate::operator::lanes::Lanes;
use crate::operator::select::{choose, everything};
use crate::operator::{Arguments, Fault, Operator, Value};
use crate::tensor::{HostTensor, with_element};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("concat", "Concat", |a| {
        let Some(number) = a.int("axis") else { refuse!("attribute axis is missing") };
        one(concat(&a.tensors()?, number)?)
    })
    .legalise(rearrange::concat)
    .deduce(deduce::concat)
    .inputs(1, usize::MAX)
    .attributes(&[("axis", Int)]),
    Operator::new("split", "Split", split)
        .legalise(rearrange::split)
        .deduce(deduce::split)
        .inputs(1, 2)
        .outputs(1, usize::MAX)
        .attributes(&[("axis", IntOr(0)), ("num_outputs", Int)]),
];

/// Tensors one after the other along a dimension.
pub(crate) fn concat(tensors: &[&HostTensor], number: i64) -> Result<HostTensor, Fault> {
    let Some(first) = tensors.first() else { refuse!("there are no tensors") };
    let dimension = axis(number, first.rank())?;
    let mut shape = first.shape().to_vec();
    shape[dimension] = 0;
    for tensor in tensors {
        let rest_equal = tensor.rank() == first.rank()
            && (0..first.rank())
                .all(|other| other == dimension || tensor.shape()[other] == first.shape()[other]);
        if !rest_equal {
            refuse!(
                "shapes {:?} and {:?} differ outside dimension {dimension}",
                first.shape(),
                tensor.shape()
            );
        }
        shape[dimension] += tensor.shape()[dimension];
    }
    with_element!(first.element(), T => {
        let parts = tensors.iter().map(|tensor| tensor.expect::<T>()).collect::<Result<Vec<_>, _>>()?;
        let runs: Vec<usize> = tensors.iter().map(|tensor| {
            let lanes = Lanes::along(tensor.shape(), dimension);
            lanes.length * lanes.inner
        }).collect();
        let mut elements = Vec::with_capacity(crate::tensor::count(&shape)?);
        for outer in 0..shape[..dimension].iter().product() {
            for (part, run) in parts.iter().zip(&runs) {
                elements.extend_from_slice(&part[outer * run..(outer + 1) * run]);
            }
        }
        Ok(HostTensor::new(&shape, elements)?)
    })
}

fn split(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let dimension = axis(arguments.int_or_default("axis"), x.rank())?;
    let extent = x.shape()[dimension];
    let lengths = match arguments.optional_integers(1)? {
        Some(lengths) => super::arrange::extents(&lengths)?,
        None => {
            let parts = arguments.int("num_outputs").map_or(arguments.outputs, |parts| parts.max(1) as usize);
            let length = extent.div_ceil(parts);
            (0..parts).map(|part| length.min(extent.saturating_sub(part * length))).collect()
        }
    };
    if lengths.iter().try_fold(0usize, |sum, &length| sum.checked_add(length)) != Some(extent) {
        refuse!("parts of lengths {lengths:?} do not make up {extent}");
    }
    split_lengths(x, dimension, &lengths)
}

/// Parts of given lengths, which make up the extent of the dimension.
pub(crate) fn split_lengths(
    x: &HostTensor,
    dimension: usize,
    lengths: &[usize],
) -> Result<Vec<Value>, Fault> {
    let mut tables: Vec<_> = x.shape().iter().map(|&extent| everything(extent)).collect();
    let mut start = 0;
    let mut parts = Vec::with_capacity(lengths.len());
    for &length in lengths {
        tables[dimension] = (start..start + length).map(Some).collect();
        parts.push(choose(x, &tables, None)?.into());
        start += length;
    }
    Ok(parts)
}

//! Any number of tensors.

use crate::operator::attribute::{Element, Int, IntOr};
use crate::operator::evaluate::{axis, one, refuse};
use crate::operator::shape::{concat, split_lengths};
use crate::operator::{Arguments, Fault, Operator, Value};
use crate::tensor::HostTensor;

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("sequence_empty", "SequenceEmpty", |_| Ok(vec![Value::Sequence(Vec::new())]))
        .inputs(0, 0)
        .attributes(&[("dtype", Element)]),
    Operator::new("sequence_construct", "SequenceConstruct", |a| {
        Ok(vec![Value::Sequence(a.tensors()?.into_iter().cloned().map(Value::Tensor).collect())])
    })
    .inputs(1, usize::MAX),
    Operator::new("sequence_length", "SequenceLength", |a| {
        one(HostTensor::scalar(sequence(a)?.len() as i64))
    }),
    Operator::new("sequence_at", "SequenceAt", |a| {
        let parts = sequence(a)?;
        let place = crate::operator::index::place(a.optional_integer(1)?.unwrap_or(0), parts.len())?;
        Ok(vec![parts[place].clone()])
    })
    .inputs(2, 2),
    Operator::new("sequence_insert", "SequenceInsert", |a| {
        let mut parts = sequence(a)?.to_vec();
        let place = match a.optional_integer(2)? {
            None => parts.len(),
            // One place more than there are values: the end.
            Some(number) if number == parts.len() as i64 => parts.len(),
            Some(number) => crate::operator::index::place(number, parts.len())?,
        };
        parts.insert(place, a.tensor(1)?.clone().into());
        Ok(vec![Value::Sequence(parts)])
    })
    .inputs(2, 3),
    Operator::new("sequence_erase", "SequenceErase", |a| {
        let mut parts = sequence(a)?.to_vec();
        let place = crate::operator::index::place(a.optional_integer(1)?.unwrap_or(-1), parts.len())?;
        parts.remove(place);
        Ok(vec![Value::Sequence(parts)])
    })
    .inputs(1, 2),
    Operator::new("split_to_sequence", "SplitToSequence", split_to_sequence)
        .inputs(1, 2)
        .attributes(&[("axis", IntOr(0)), ("keepdims", IntOr(1))]),
    Operator::new("concat_from_sequence", "ConcatFromSequence", concat_from_sequence)
        .attributes(&[("axis", Int), ("new_axis", IntOr(0))]),
];

fn sequence<'a>(arguments: &Arguments<'a>) -> Result<&'a [Value], Fault> {
    match arguments.value(0) {
        Some(Value::Sequence(parts)) => Ok(parts),
        _ => refuse!("input 0 must be a sequence"),
    }
}

fn split_to_sequence(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let dimension = axis(arguments.int_or_default("axis"), x.rank())?;
    let extent = x.shape()[dimension];
    let sizes = arguments.optional_integers(1)?;
    let drops = sizes.is_none() && !arguments.flag("keepdims");
    let lengths = match (&sizes, arguments.optional(1)?.map(HostTensor::rank)) {
        (None, _) => vec![1; extent],
        (Some(sizes), Some(0)) => {
            let size = usize::try_from(sizes[0]).unwrap_or(0).max(1);
            (0..extent.div_ceil(size)).map(|part| size.min(extent - part * size)).collect()
        }
        (Some(sizes), _) => crate::operator::extents(sizes)?,
    };
    if lengths.iter().sum::<usize>() != extent {
        refuse!("parts of lengths {lengths:?} do not make up {extent}");
    }
    let mut parts = split_lengths(x, dimension, &lengths)?;
    if drops {
        for part in &mut parts {
            if let Value::Tensor(tensor) = part {
                let mut shape = tensor.shape().to_vec();
                shape.remove(dimension);
                *part = tensor.reshape(&shape)?.into();
            }
        }
    }
    Ok(vec![Value::Sequence(parts)])
}

fn concat_from_sequence(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let Some(number) = arguments.int("axis") else { refuse!("attribute axis is missing") };
    let tensors = sequence(arguments)?.iter().map(Value::as_tensor).collect::<Option<Vec<_>>>();
    let Some(tensors) = tensors else { refuse!("only tensors can be joined") };
    if !arguments.flag("new_axis") {
        return one(concat(&tensors, number)?);
    }
    let Some(first) = tensors.first() else { refuse!("there are no tensors") };
    let dimension = axis(number, first.rank() + 1)?;
    let widened = tensors.iter().map(|tensor| {
        let mut shape = tensor.shape().to_vec();
        shape.insert(dimension, 1);
        tensor.reshape(&shape)
    });
    let widened = widened.collect::<Result<Vec<_>, _>>()?;
    one(concat(&widened.iter().collect::<Vec<_>>(), dimension as i64)?)
}

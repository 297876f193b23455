//! The same elements in the same order, in another shape.

use crate::deduce;
use crate::operator::attribute::IntOr;
use crate::operator::evaluate::{axis, one, refuse};
use crate::operator::{Arguments, Fault, Operator, Value};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("reshape", "Reshape", reshape)
        .deduce(deduce::reshape)
        .inputs(2, 2)
        .attributes(&[("allowzero", IntOr(0))]),
    Operator::new("flatten", "Flatten", flatten).deduce(deduce::flatten).attributes(&[("axis", IntOr(1))]),
    Operator::new("squeeze", "Squeeze", squeeze).deduce(deduce::squeeze).inputs(1, 2),
    Operator::new("unsqueeze", "Unsqueeze", unsqueeze).deduce(deduce::unsqueeze).inputs(2, 2),
];

fn reshape(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let wanted = arguments.integers(1)?;
    let keeps_zero = arguments.flag("allowzero");
    let mut shape = Vec::with_capacity(wanted.len());
    let mut open = None;
    for (dimension, &extent) in wanted.iter().enumerate() {
        shape.push(match extent {
            0 if !keeps_zero => match x.shape().get(dimension) {
                Some(&extent) => extent,
                None => {
                    refuse!("shape {wanted:?} copies dimension {dimension} of a tensor of rank {}", x.rank())
                }
            },
            -1 if open.is_none() => {
                open = Some(dimension);
                1
            }
            extent => match usize::try_from(extent) {
                Ok(extent) => extent,
                Err(_) => refuse!("shape {wanted:?} may hold one -1 and no other negative extent"),
            },
        });
    }
    if let Some(dimension) = open {
        let others = crate::tensor::count(&shape)?;
        if others == 0 || x.len() % others != 0 {
            refuse!("{} elements cannot be divided into shape {wanted:?}", x.len());
        }
        shape[dimension] = x.len() / others;
    }
    one(x.reshape(&shape)?)
}

fn flatten(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let number = arguments.int_or_default("axis");
    let dimension = if number == x.rank() as i64 { x.rank() } else { axis(number, x.rank())? };
    let (outer, inner) = x.shape().split_at(dimension);
    one(x.reshape(&[outer.iter().product(), inner.iter().product()])?)
}

fn squeeze(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let mut removed: Vec<bool> = x.shape().iter().map(|&extent| extent == 1).collect();
    if let Some(axes) = arguments.optional_integers(1)? {
        removed.fill(false);
        for number in axes {
            let dimension = axis(number, x.rank())?;
            if x.shape()[dimension] != 1 {
                refuse!("dimension {dimension} of shape {:?} is not 1 and cannot be removed", x.shape());
            }
            removed[dimension] = true;
        }
    }
    let kept = x.shape().iter().zip(removed).filter(|(_, removed)| !removed);
    one(x.reshape(&kept.map(|(&extent, _)| extent).collect::<Vec<_>>())?)
}

fn unsqueeze(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let axes = arguments.integers(1)?;
    let rank = x.rank() + axes.len();
    let mut added = vec![false; rank];
    for &number in &axes {
        let dimension = axis(number, rank)?;
        if std::mem::replace(&mut added[dimension], true) {
            refuse!("axes {axes:?} name dimension {dimension} twice");
        }
    }
    let mut extents = x.shape().iter();
    let shape = added.iter().map(|&added| if added { 1 } else { extents.next().copied().unwrap_or(1) });
    one(x.reshape(&shape.collect::<Vec<_>>())?)
}

//! Writing places that other tensors name. Updates are applied in row-major order.

use crate::deduce;
use crate::ir::AttributeKind;
use crate::legalise::place;
use crate::operator::attribute::{IntOr, TextOr};
use crate::operator::evaluate::{axis, one, refuse};
use crate::operator::index::gather::{element_places, slice_starts};
use crate::operator::{Arguments, Fault, Operator, Value};
use crate::tensor::{HostTensor, Number, with_element, with_number};

const ATTRIBUTES: &[(&str, AttributeKind)] = &[("axis", IntOr(0)), ("reduction", TextOr("none"))];

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("scatter_elements", "ScatterElements", scatter_elements)
        .legalise(place::scatter_elements)
        .deduce(deduce::same)
        .inputs(3, 3)
        .attributes(ATTRIBUTES),
    Operator::new("scatter_nd", "ScatterND", scatter_nd)
        .legalise(place::scatter_nd)
        .deduce(deduce::same)
        .inputs(3, 3)
        .attributes(&[("reduction", TextOr("none"))]),
];

fn scatter_elements(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let (x, indices) = (arguments.tensor(0)?, arguments.tensor(1)?);
    let dimension = axis(arguments.int_or_default("axis"), x.rank())?;
    let offsets = element_places(x.shape(), indices.shape(), &arguments.integers(1)?, dimension)?;
    update(x, &offsets, arguments.tensor(2)?, arguments.text("reduction"))
}

fn scatter_nd(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let (x, indices) = (arguments.tensor(0)?, arguments.tensor(1)?);
    let Some(&depth) = indices.shape().last() else { refuse!("indices must have a dimension") };
    if depth > x.rank() {
        refuse!("indices of shape {:?} do not fit a tensor of shape {:?}", indices.shape(), x.shape());
    }
    let run: usize = x.shape()[depth..].iter().product();
    let starts = slice_starts(x.shape(), &arguments.integers(1)?, depth)?;
    let offsets: Vec<usize> = starts.into_iter().flat_map(|start| start..start + run).collect();
    update(x, &offsets, arguments.tensor(2)?, arguments.text("reduction"))
}

/// Replaces elements at offsets, or combines them with what is there.
fn update(
    x: &HostTensor,
    offsets: &[usize],
    updates: &HostTensor,
    reduction: &str,
) -> Result<Vec<Value>, Fault> {
    if updates.len() != offsets.len() {
        refuse!("{} updates do not fit {} indices", updates.len(), offsets.len());
    }
    if reduction == "none" {
        return with_element!(x.element(), T => {
            let mut elements = x.expect::<T>()?.to_vec();
            for (&offset, value) in offsets.iter().zip(updates.expect::<T>()?) {
                elements[offset] = value.clone();
            }
            one(HostTensor::new(x.shape(), elements)?)
        });
    }
    with_number!(x.element(), T => {
        let combine: fn(T, T) -> T = match reduction {
            "add" => T::add,
            "mul" => T::multiply,
            "max" => T::larger,
            "min" => T::smaller,
            other => refuse!("attribute reduction must be none, add, mul, max or min, not {other}"),
        };
        let mut elements = x.expect::<T>()?.to_vec();
        for (&offset, &value) in offsets.iter().zip(updates.expect::<T>()?) {
            elements[offset] = combine(elements[offset], value);
        }
        one(HostTensor::new(x.shape(), elements)?)
    }, else refuse!("elements of type {} cannot be combined", x.element()))
}

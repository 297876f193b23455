//! Types of what control flow gives.

use crate::deduce::{Fact, fresh};
use crate::ir::{Body, Loop, Scan, Shape, TensorType, Type, ValueId, ValueInfo};
use crate::symbolic::SymInt;

/// The most specific type that covers both types. Extents that differ become symbols of their own.
fn join(left: &Type, right: &Type, counter: &mut u32) -> Type {
    match (left, right) {
        (Type::Tensor(left), Type::Tensor(right)) => {
            let element = left.element.filter(|_| left.element == right.element);
            let shape = match (left.shape.extents(), right.shape.extents()) {
                (Some(left), Some(right)) if left.len() == right.len() => {
                    let extent = |(left, right): (&SymInt, &SymInt)| {
                        if left == right { left.clone() } else { fresh(counter) }
                    };
                    Shape::Known(left.iter().zip(right).map(extent).collect())
                }
                _ => Shape::Unknown,
            };
            Type::Tensor(TensorType { element, shape })
        }
        (left, right) if left == right => left.clone(),
        _ => Type::Unknown,
    }
}

/// The types of the results of `if`.
pub(crate) fn branches(
    then_body: &Body,
    else_body: &Body,
    values: &[ValueInfo],
    counter: &mut u32,
) -> Vec<Fact> {
    let ty = |value: &ValueId| &values[value.index()].ty;
    let pairs = then_body.results.iter().zip(&else_body.results);
    pairs.map(|(left, right)| Fact::of_type(join(ty(left), ty(right), counter))).collect()
}

/// A type of which only element type and rank are kept; every extent is a symbol of its own.
fn blurred(ty: &Type, counter: &mut u32) -> Type {
    match ty {
        Type::Tensor(tensor) => {
            let shape = match tensor.shape.extents() {
                Some(extents) => Shape::Known(extents.iter().map(|_| fresh(counter)).collect()),
                None => Shape::Unknown,
            };
            Type::Tensor(TensorType { element: tensor.element, shape })
        }
        other => other.clone(),
    }
}

/// The type of stacked slices, with the new dimension at `axis`.
fn stacked(slice: &Type, axis: i64, counter: &mut u32) -> Type {
    match blurred(slice, counter) {
        Type::Tensor(TensorType { element, shape: Shape::Known(mut extents) }) => {
            let rank = extents.len() as i64 + 1;
            let place = (if axis < 0 { axis + rank } else { axis }).clamp(0, rank - 1);
            extents.insert(place as usize, fresh(counter));
            Type::Tensor(TensorType { element, shape: Shape::Known(extents) })
        }
        other => other,
    }
}

/// The types of the results of a loop. A carried value may have another shape after each iteration, and a loop may run none.
pub(crate) fn repeated(operation: &Loop, values: &[ValueInfo], counter: &mut u32) -> Vec<Fact> {
    let ty = |value: &ValueId| &values[value.index()].ty;
    let (last, slices) = operation.body.results[1..].split_at(operation.carried.len());
    let mut facts = Vec::with_capacity(operation.body.results.len() - 1);
    for (first, last) in operation.carried.iter().zip(last) {
        let joined = join(ty(first), ty(last), counter);
        facts.push(Fact::of_type(if ty(first) == ty(last) { joined } else { blurred(&joined, counter) }));
    }
    facts.extend(slices.iter().map(|slice| Fact::of_type(stacked(ty(slice), 0, counter))));
    facts
}

/// The types of the results of a scan.
pub(crate) fn scanned(operation: &Scan, values: &[ValueInfo], counter: &mut u32) -> Vec<Fact> {
    let ty = |value: &ValueId| &values[value.index()].ty;
    let (last, slices) = operation.body.results.split_at(operation.states.len());
    let mut facts = Vec::with_capacity(operation.body.results.len());
    for (first, last) in operation.states.iter().zip(last) {
        let joined = join(ty(first), ty(last), counter);
        facts.push(Fact::of_type(if ty(first) == ty(last) { joined } else { blurred(&joined, counter) }));
    }
    for (slice, order) in slices.iter().zip(&operation.outputs) {
        facts.push(Fact::of_type(stacked(ty(slice), order.axis, counter)));
    }
    facts
}

//! Calls that change nothing, and pairs that undo one another.

use crate::build::BuildError;
use crate::ir::{Attribute, Attributes, Call, ValueId};
use crate::operator;
use crate::pass::{CallRule, Rewriter};
use crate::tensor::{ElementType, HostTensor};

/// Algebraic simplification of single calls.
pub(super) struct Simplify;

impl CallRule for Simplify {
    fn rewrite_call(
        &mut self,
        graph: &mut Rewriter<'_>,
        call: &Call,
    ) -> Result<Option<Vec<ValueId>>, BuildError> {
        let same = match call.operator.name {
            "identity" | "dropout" => call.inputs[0],
            "add" => neutral(graph, call, 0.0, true),
            "sub" => neutral(graph, call, 0.0, false),
            "mul" => neutral(graph, call, 1.0, true),
            "div" | "pow" => neutral(graph, call, 1.0, false),
            "cast" | "reshape" | "expand" | "squeeze" | "unsqueeze" | "flatten" | "slice" | "pad"
            | "tile" => unchanged(graph, call),
            "concat" if call.inputs.len() == 1 => call.inputs[0],
            "transpose" => return transpose(graph, call),
            "cast_like" => return cast_like(graph, call),
            _ => None,
        };
        Ok(same.map(|value| vec![value]))
    }
}

/// The other operand, when one is a constant that changes nothing, and the result has the other's type.
fn neutral(graph: &mut Rewriter<'_>, call: &Call, number: f64, commutes: bool) -> Option<ValueId> {
    let &[Some(left), Some(right)] = &call.inputs[..] else { return None };
    let all = |value: ValueId| {
        let tensor = graph.constant(value).filter(|tensor| tensor.element() != ElementType::String)?;
        let numbers = tensor.cast(ElementType::F64).ok()?;
        // Adding zero is not quite nothing: it turns -0 into 0, which no comparison tells apart.
        Some(numbers.as_slice::<f64>()?.iter().all(|&x| x == number))
    };
    let kept = if all(right) == Some(true) {
        left
    } else if commutes && all(left) == Some(true) {
        right
    } else {
        return None;
    };
    let other = if kept == left { right } else { left };
    // The constant must not broadcast the other operand to a larger shape.
    let (kept_extents, other_extents) =
        (graph.builder.ty(kept).extents()?, graph.builder.ty(other).extents()?);
    let fits = other_extents.len() <= kept_extents.len()
        && other_extents
            .iter()
            .rev()
            .zip(kept_extents.iter().rev())
            .all(|(other, kept)| other.is(1) || other == kept);
    fits.then_some(kept)
}

/// The input, when the result provably has the same type and such calls keep the order of elements.
fn unchanged(graph: &Rewriter<'_>, call: &Call) -> Option<ValueId> {
    let input = call.inputs[0]?;
    let before = graph.builder.ty(input);
    let (element, extents) = (before.element()?, before.extents()?);
    // Reversed slices and shifted padding keep the shape, but not the elements.
    if call.operator.name == "slice" {
        let steps = call.inputs.get(4).copied().flatten();
        let forward = |steps: &HostTensor| {
            steps.cast(ElementType::I64).is_ok_and(|steps| {
                steps.as_slice::<i64>().is_some_and(|steps| steps.iter().all(|&step| step == 1))
            })
        };
        if !steps.is_none_or(|steps| graph.constant(steps).is_some_and(forward)) {
            return None;
        }
    }
    if call.operator.name == "pad" {
        let pads = graph.constant(call.inputs[1]?)?.cast(ElementType::I64).ok()?;
        if pads.as_slice::<i64>()?.iter().any(|&pad| pad != 0) {
            return None;
        }
    }
    let after = graph.builder.deduce(call, 1)?;
    let after = after.first()?;
    (after.element() == Some(element) && after.extents() == Some(extents)).then_some(input)
}

/// A conversion to the type of another value is one to a type that is known.
fn cast_like(graph: &mut Rewriter<'_>, call: &Call) -> Result<Option<Vec<ValueId>>, BuildError> {
    let other = call.inputs.get(1).copied().flatten();
    let Some(element) = other.and_then(|other| graph.builder.ty(other).element()) else { return Ok(None) };
    let operator = operator::find("cast").expect("the table has conversions");
    let attributes = call.attributes.clone().with("to", Attribute::Element(element));
    graph.add_call(Call { operator, inputs: vec![call.inputs[0]], attributes }, 1).map(Some)
}

/// Transpositions one after the other are one, or none.
fn transpose(graph: &mut Rewriter<'_>, call: &Call) -> Result<Option<Vec<ValueId>>, BuildError> {
    let Some(input) = call.inputs[0] else { return Ok(None) };
    let Some(rank) = graph.builder.ty(input).extents().map(<[_]>::len) else { return Ok(None) };
    let order = order(call, rank);
    if order.iter().copied().eq(0..rank as i64) {
        return Ok(Some(vec![input]));
    }
    let Some(inner) = graph.call(input).filter(|inner| inner.operator.name == "transpose").cloned() else {
        return Ok(None);
    };
    let first = self::order(&inner, rank);
    let combined = order.iter().map(|&place| first[place as usize]).collect();
    let attributes = Attributes::none().with("perm", Attribute::Ints(combined));
    graph.add_call(Call { attributes, ..inner }, 1).map(Some)
}

/// The order of dimensions that a transposition gives, none of them negative.
fn order(call: &Call, rank: usize) -> Vec<i64> {
    match call.attributes.get("perm") {
        Some(Attribute::Ints(order)) => {
            order.iter().map(|&place| place.rem_euclid(rank.max(1) as i64)).collect()
        }
        _ => (0..rank as i64).rev().collect(),
    }
}

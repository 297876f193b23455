//! Movement of dequantised numbers becomes movement of their integers.
//!
//! `max_pool(dequantize(x))` becomes `dequantize(max_pool(x))`: an operator that only chooses among elements gives the same whether they are read as
//! numbers before or after it. It moves a quarter of the bytes then, and the conversion meets the product or the conversion behind it.

use crate::build::BuildError;
use crate::ir::{Attribute, Attributes, Call, ValueId};
use crate::pass::Rewriter;
use crate::pass::quantise::operand::{Quantised, conversion, integers_of};
use crate::tensor::ElementType;

/// Operators whose results are elements of their first input in another place.
const MOVEMENTS: &[&str] = &["reshape", "flatten", "transpose", "squeeze", "unsqueeze", "slice", "expand"];

/// The call on the integers of its first input, if it moves numbers that are all dequantised alike.
pub(super) fn move_integers(
    graph: &mut Rewriter<'_>,
    call: &Call,
) -> Result<Option<Vec<ValueId>>, BuildError> {
    if !MOVEMENTS.contains(&call.operator.name) && !chooses_largest(call) {
        return Ok(None);
    }
    let Some(read) = conversion(graph, call.inputs[0]).cloned() else { return Ok(None) };
    let Ok(source) = Quantised::of(graph, call.inputs[0], "the input") else { return Ok(None) };
    let is_byte = matches!(source.element, ElementType::U8 | ElementType::I8);
    // A negative scale would make the smallest element the largest.
    let is_increasing = known_scale(&source).is_some_and(|scale| scale > 0.0);
    if !is_byte || !source.is_uniform() || !is_increasing {
        return Ok(None);
    }
    let inputs = [&[Some(source.integers)], &call.inputs[1..]].concat();
    let moved = graph.add_call(Call { inputs, ..call.clone() }, 1)?;
    let inputs = [&[Some(moved[0])], &read.inputs[1..]].concat();
    // The one scale belongs to no dimension.
    graph.add_call(Call { inputs, attributes: Attributes::none(), ..read }, 1).map(Some)
}

/// Whether a call takes the largest element of each window of which some tap lies inside of the input.
fn chooses_largest(call: &Call) -> bool {
    let dilations = match call.attributes.get("dilations") {
        Some(Attribute::Ints(dilations)) => &dilations[..],
        _ => &[],
    };
    call.operator.name == "max_pool" && dilations.iter().all(|&dilation| dilation == 1)
}

/// The integers themselves, if they are read as numbers and stored as integers with the same scale and zero point. The number of an integer
/// `n` divided by the scale differs from `n` by less than `n / 2²²`, so that it is rounded to `n`.
pub(super) fn stored_again(graph: &Rewriter<'_>, quantize: &Call) -> Option<ValueId> {
    let source = Quantised::of(graph, quantize.inputs[0], "the input").ok()?;
    if ["block_size", "precision", "output_dtype"].iter().any(|name| quantize.attributes.get(name).is_some())
    {
        return None;
    }
    let scale = graph.constant(quantize.inputs[1]?)?.as_slice::<f32>().filter(|scales| scales.len() == 1)?[0];
    let zero = quantize.inputs.get(2).copied().flatten();
    let (element, zero) = match zero {
        Some(zero) => (graph.builder.ty(zero).element()?, integers_of(graph.constant(zero)?)?),
        None => (ElementType::U8, vec![0]),
    };
    let is_same = source.is_uniform()
        && source.element == element
        && scale.is_normal()
        && scale > 0.0
        && known_scale(&source) == Some(scale)
        && source.zeros.as_ref() == Some(&zero);
    is_same.then_some(source.integers)
}

/// The only scale, where it is known.
fn known_scale(source: &Quantised) -> Option<f32> {
    source.scales.as_ref().and_then(|scales| scales.first().copied())
}

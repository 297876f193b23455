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

/// Whether integers that are read as numbers and stored with a scale and zero point are the same as before. The number of an integer `n` divided by its
/// scale differs from `n` by less than `n / 2²²`, so that it is rounded to `n`.
pub(super) fn is_stored_again(
    graph: &Rewriter<'_>,
    source: &Quantised,
    scale: ValueId,
    zero: Option<ValueId>,
) -> bool {
    let constant = |value: ValueId| graph.constant(value);
    let scale = constant(scale).and_then(|scale| scale.as_slice::<f32>()).filter(|scales| scales.len() == 1);
    let stored = match zero {
        Some(zero) => graph.builder.ty(zero).element().zip(constant(zero).and_then(integers_of)),
        None => Some((ElementType::U8, vec![0])),
    };
    let (Some(&[scale]), Some((element, zeros))) = (scale, stored) else { return false };
    source.is_uniform()
        && source.element == element
        && scale.is_normal()
        && scale > 0.0
        && known_scale(source) == Some(scale)
        && source.zeros.as_ref() == Some(&zeros)
}

/// The only scale, where it is known.
fn known_scale(source: &Quantised) -> Option<f32> {
    source.scales.as_ref().and_then(|scales| scales.first().copied())
}

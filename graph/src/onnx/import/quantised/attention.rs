//! Attention whose projection is a product of integers.

use crate::ir::{Attribute, Attributes, ValueId};
use crate::onnx::import::quantised::{Quantised, Translated, reshape, scaled_product};
use crate::onnx::import::upgrade::Refusal;
use crate::tensor::{ElementType, HostTensor};

/// Inputs: integers `[batch, steps, width]`, weights `[width, 3 · hidden]` of queries, keys and values beside each other, a bias of numbers, the scales of
/// both factors, a mask, the zero points of both factors, and earlier keys and values `[2, batch, heads, earlier, size of a head]`. Results: numbers
/// `[batch, steps, hidden]`, and keys and values with the earlier ones.
pub(super) fn attention(node: &mut Quantised<'_, '_>) -> Translated {
    let heads = node.int("num_heads", 0)?;
    let is_causal = node.int("unidirectional", 0)? != 0;
    let masked = match node.node.attributes.take("mask_filter_value") {
        None => -10_000.0,
        Some(Attribute::Float(value)) => value,
        Some(_) => return Err(Refusal("attribute mask_filter_value must be a number".to_owned())),
    };
    for name in ["do_rotary", "past_present_share_buffer"] {
        if node.int(name, 0)? != 0 {
            return Err(Refusal(format!("attribute {name} must be 0")));
        }
    }
    let (integers, scales) = ([node.input(0)?, node.input(1)?], [node.input(3)?, node.input(4)?]);
    let hidden = columns(node, integers[1])? / 3;
    if heads <= 0 || hidden % heads != 0 {
        return Err(Refusal(format!("num_heads = {heads} does not divide a width of {hidden}")));
    }
    let zeros = [node.optional(6), node.optional(7)];
    let bias = Some(node.input(2)?);
    let projected = scaled_product(node, integers, scales, zeros, bias)?[0];
    let parts = node.builder.call_operator("split", vec![Some(projected)], along("axis", -1), 3)?;
    let mut parts = [parts[0], parts[1], parts[2]];
    for part in &mut parts {
        let split = reshape(node, *part, &[0, 0, heads, hidden / heads])?;
        *part = transposed(node, split, &[0, 2, 1, 3])?;
    }
    let [queries, mut keys, mut values] = parts;
    if let Some(earlier) = node.optional(8) {
        for (place, own) in [(0i64, &mut keys), (1, &mut values)] {
            let index = node.builder.constant(HostTensor::scalar(place));
            let before = node.call("gather", &[earlier, index], along("axis", 0))?;
            *own = node.call("concat", &[before, *own], along("axis", 2))?;
        }
    }
    let across = transposed(node, keys, &[0, 1, 3, 2])?;
    let scores = node.call("matmul", &[queries, across], Attributes::none())?;
    let factor = number(node, 1.0 / ((hidden / heads) as f32).sqrt());
    let mut scores = node.call("mul", &[scores, factor], Attributes::none())?;
    if let Some(mask) = node.optional(5) {
        let added = mask_of(node, mask, keys, masked)?;
        scores = node.call("add", &[scores, added], Attributes::none())?;
    }
    if is_causal {
        scores = causal(node, scores, queries, keys)?;
    }
    let shares = node.call("softmax", &[scores], along("axis", -1))?;
    let mixed = node.call("matmul", &[shares, values], Attributes::none())?;
    let mixed = transposed(node, mixed, &[0, 2, 1, 3])?;
    let mut results = vec![reshape(node, mixed, &[0, 0, hidden])?];
    if node.node.used.len() > 1 {
        let axis = node.builder.constant(HostTensor::vector(vec![0i64]));
        let keys = node.call("unsqueeze", &[keys, axis], Attributes::none())?;
        let values = node.call("unsqueeze", &[values, axis], Attributes::none())?;
        results.push(node.call("concat", &[keys, values], along("axis", 0))?);
    }
    Ok(results)
}

/// The number of columns of the weights, which has to be known.
fn columns(node: &Quantised<'_, '_>, weights: ValueId) -> Result<i64, Refusal> {
    match node.builder.ty(weights).extents() {
        Some([_, columns]) if columns.as_constant().is_some_and(|columns| columns % 3 == 0) => {
            Ok(columns.as_constant().expect("it was just found to be known"))
        }
        _ => Err(Refusal(
            "the weights must be a matrix of a known width, a third each for queries, keys and values"
                .to_owned(),
        )),
    }
}

/// Numbers to be added to scores: 0 where a key may be seen, `masked` elsewhere. A mask has a 1 for each key that may be seen, in a row for each
/// sequence, or the number of these keys of each sequence.
fn mask_of(
    node: &mut Quantised<'_, '_>,
    mask: ValueId,
    keys: ValueId,
    masked: f32,
) -> Result<ValueId, Refusal> {
    let rank = node.builder.ty(mask).extents().map(<[_]>::len);
    let hidden = match rank {
        Some(2) => {
            let seen = cast(node, mask, ElementType::F32)?;
            let one = number(node, 1.0);
            node.call("sub", &[one, seen], Attributes::none())?
        }
        Some(1) => {
            let places = places_of(node, keys)?;
            let counts = cast(node, mask, ElementType::I64)?;
            let counts = unsqueeze(node, counts, &[1])?;
            let seen = node.call("less", &[places, counts], Attributes::none())?;
            let hidden = node.call("not", &[seen], Attributes::none())?;
            cast(node, hidden, ElementType::F32)?
        }
        _ => return Err(Refusal("a mask must have a row, or a count of keys, for each sequence".to_owned())),
    };
    let factor = number(node, masked);
    let added = node.call("mul", &[hidden, factor], Attributes::none())?;
    unsqueeze(node, added, &[1, 2])
}

/// Scores of which each query keeps those of keys up to its own place; queries are at the last places of the keys.
fn causal(
    node: &mut Quantised<'_, '_>,
    scores: ValueId,
    queries: ValueId,
    keys: ValueId,
) -> Result<ValueId, Refusal> {
    let (of_keys, of_queries) = (places_of(node, keys)?, places_of(node, queries)?);
    let (count, own) = (steps(node, keys)?, steps(node, queries)?);
    let earlier = node.call("sub", &[count, own], Attributes::none())?;
    let of_queries = node.call("add", &[of_queries, earlier], Attributes::none())?;
    let of_queries = unsqueeze(node, of_queries, &[1])?;
    let seen = node.call("less_or_equal", &[of_keys, of_queries], Attributes::none())?;
    let least = number(node, f32::MIN);
    node.call("where", &[seen, scores, least], Attributes::none())
}

/// The number of steps of queries or keys `[batch, heads, steps, size]`, as a scalar.
fn steps(node: &mut Quantised<'_, '_>, tensor: ValueId) -> Result<ValueId, Refusal> {
    let shape = node.call("shape", &[tensor], Attributes::none())?;
    let place = node.builder.constant(HostTensor::scalar(2i64));
    node.call("gather", &[shape, place], along("axis", 0))
}

/// The places of the steps of a tensor, from 0 on.
fn places_of(node: &mut Quantised<'_, '_>, tensor: ValueId) -> Result<ValueId, Refusal> {
    let count = steps(node, tensor)?;
    let [zero, one] = [0i64, 1].map(|bound| node.builder.constant(HostTensor::scalar(bound)));
    node.call("range", &[zero, count, one], Attributes::none())
}

fn along(name: &str, dimension: i64) -> Attributes {
    Attributes::none().with(name, Attribute::Int(dimension))
}

fn transposed(node: &mut Quantised<'_, '_>, value: ValueId, order: &[i64]) -> Result<ValueId, Refusal> {
    node.call("transpose", &[value], Attributes::none().with("perm", Attribute::Ints(order.to_vec())))
}

fn unsqueeze(node: &mut Quantised<'_, '_>, value: ValueId, dimensions: &[i64]) -> Result<ValueId, Refusal> {
    let dimensions = node.builder.constant(HostTensor::vector(dimensions.to_vec()));
    node.call("unsqueeze", &[value, dimensions], Attributes::none())
}

fn cast(node: &mut Quantised<'_, '_>, value: ValueId, to: ElementType) -> Result<ValueId, Refusal> {
    node.call("cast", &[value], Attributes::none().with("to", Attribute::Element(to)))
}

fn number(node: &mut Quantised<'_, '_>, value: f32) -> ValueId {
    node.builder.constant(HostTensor::scalar(value))
}

//! `Attention` and `MultiHeadAttention` of ONNX Runtime.

use super::{Parts, Translated};
use crate::ir::{Attribute, ValueId};
use crate::onnx::import::expansion::{Expansion, Extent};
use crate::onnx::import::upgrade::{GREATEST_EXTENT, Refusal};
use crate::tensor::ElementType;

/// The number that is added to scores of padding if the attribute `mask_filter_value` is missing.
const USUAL_FILTER: f32 = -10000.0;

/// The lowest number of an element type.
fn lowest(element: ElementType) -> f64 {
    match element {
        ElementType::F16 => f64::from(half::f16::MIN),
        ElementType::BF16 => f64::from(half::bf16::MIN),
        ElementType::F64 => f64::MIN,
        _ => f64::from(f32::MIN),
    }
}

/// Attributes that both operators have.
struct Shared {
    heads: i64,
    filter: f64,
    scale: Option<f32>,
    is_causal: bool,
}

impl Shared {
    fn of(node: &mut Expansion<'_, '_>) -> Result<Self, Refusal> {
        let heads = node.count("num_heads")?.filter(|&heads| heads > 0);
        Ok(Shared {
            heads: heads.ok_or_else(|| Refusal("attribute num_heads must be above 0".to_owned()))?,
            filter: f64::from(node.float("mask_filter_value")?.unwrap_or(USUAL_FILTER)),
            // Zero stands for the usual scale.
            scale: node.float("scale")?.filter(|&scale| scale != 0.0),
            is_causal: node.int("unidirectional")?.unwrap_or(0) != 0,
        })
    }

    /// The means of values, joined: `[batch, R, heads · E]`.
    fn attend(
        &self,
        node: &mut Expansion<'_, '_>,
        [queries, keys, values]: [ValueId; 3],
        padding: Option<ValueId>,
        bias: Option<ValueId>,
    ) -> Result<ValueId, Refusal> {
        let mut mask = match padding {
            None => bias,
            Some(padding) => {
                let padding = self.padding(node, padding, keys, queries)?;
                node.add_masks(bias, Some(padding))?
            }
        };
        if self.is_causal {
            let element = node.element(queries, "the queries")?;
            let (rows, columns) = (Extent::Of(queries, 2), Extent::Of(keys, 2));
            // Queries are the last of the tokens that have keys.
            let [all, own] = [columns, rows].map(|extent| node.extent(extent));
            let offset = node.call("sub", &[all?, own?], &[])?;
            let (row, column) = (node.places(rows, 1)?, node.places(columns, 0)?);
            let row = node.call("add", &[row, offset], &[])?;
            let allowed = node.call("less_or_equal", &[column, row], &[])?;
            // A key that comes later stays hidden, whatever else hides the others: `mask_filter_value` is for padding alone.
            let causal = node.masked_unless(allowed, lowest(element), element)?;
            mask = node.add_masks(mask, Some(causal))?;
        }
        let parts = Parts { queries, keys, values, mask, scale: self.scale, zero_if_masked: false };
        let means = node.attend(parts)?;
        node.join_heads(means)
    }

    /// A mask of integers, in which 0 hides a key: `[batch]` numbers of keys, `[batch, C]`, `[batch, R, C]` or `[batch, 1, R, C]`.
    fn padding(
        &self,
        node: &mut Expansion<'_, '_>,
        mask: ValueId,
        keys: ValueId,
        queries: ValueId,
    ) -> Result<ValueId, Refusal> {
        let element = node.element(queries, "the queries")?;
        let rank = node.rank(mask, "the mask")?;
        let of = node.element(mask, "the mask")?;
        let allowed = if rank == 1 {
            let same = node.builder.ty(mask).extents().map(|extents| &extents[0])
                == node.builder.ty(keys).extents().map(|extents| &extents[0]);
            if !same {
                return Err(Refusal(
                    "a mask of one dimension must have the number of keys of each sequence".to_owned(),
                ));
            }
            let columns = node.places(Extent::Of(keys, 2), 0)?;
            let columns = node.call("cast", &[columns], &[("to", Attribute::Element(of))])?;
            let lengths = node.unsqueeze(mask, &[1, 2, 3])?;
            node.call("less", &[columns, lengths], &[])?
        } else {
            let axes: &[i64] = match rank {
                2 => &[1, 2],
                3 => &[1],
                _ => &[],
            };
            let mask = if axes.is_empty() { mask } else { node.unsqueeze(mask, axes)? };
            match of {
                ElementType::Bool => mask,
                _ => {
                    let zero = node.number(0.0, of)?;
                    node.call("greater", &[mask, zero], &[])?
                }
            }
        };
        node.masked_unless(allowed, self.filter, element)
    }
}

/// Inputs: tokens `[batch, R, width]`, weights of queries, keys and values beside each other, their bias, a mask of integers, keys and values of
/// earlier calls `[2, batch, heads, P, D]`, and what is added to the scores. Outputs: the joined means, and all keys and values.
pub(super) fn attention(node: &mut Expansion<'_, '_>) -> Translated {
    node.refuse_inputs(&[(6, "past_sequence_length")])?;
    let shared = Shared::of(node)?;
    for name in ["do_rotary", "past_present_share_buffer"] {
        if node.int(name)?.unwrap_or(0) != 0 {
            return Err(Refusal(format!("attribute {name} must be 0")));
        }
    }
    node.int("rotary_embedding_dim")?;
    let (tokens, weights) = (node.input(0)?, node.input(1)?);
    let width =
        node.known(weights, 1).ok_or_else(|| Refusal("the width of the weights must be known".to_owned()))?;
    let widths = match node.node.attributes.take("qkv_hidden_sizes") {
        Some(Attribute::Ints(widths)) if widths.len() == 3 => {
            widths.into_iter().map(|width| width.clamp(0, GREATEST_EXTENT)).collect()
        }
        None | Some(Attribute::Ints(_)) => vec![width / 3; 3],
        Some(_) => return Err(Refusal("attribute qkv_hidden_sizes must be integers".to_owned())),
    };
    let mut projected = node.call("matmul", &[tokens, weights], &[])?;
    if let Some(bias) = node.optional(2) {
        projected = node.call("add", &[projected, bias], &[])?;
    }
    let mut start = 0;
    let mut parts = Vec::new();
    for width in widths {
        let part = node.slice(projected, 2, Extent::Fixed(start), Extent::Fixed(start + width))?;
        parts.push(node.split_heads(part, shared.heads)?);
        start += width;
    }
    let (queries, mut keys, mut values) = (parts[0], parts[1], parts[2]);
    if let Some(past) = node.optional(4) {
        let first = node.integers(&[0]);
        for (place, value) in [(0, &mut keys), (1, &mut values)] {
            let own = node.slice(past, 0, Extent::Fixed(place), Extent::Fixed(place + 1))?;
            let own = node.call("squeeze", &[own, first], &[])?;
            *value = node.concat([own, *value], 2)?;
        }
    }
    let (mask, bias) = (node.optional(3), node.optional(5));
    let means = shared.attend(node, [queries, keys, values], mask, bias)?;
    if node.node.used.len() < 2 {
        return Ok(vec![means]);
    }
    let (of_keys, of_values) = (node.unsqueeze(keys, &[0])?, node.unsqueeze(values, &[0])?);
    Ok(vec![means, node.concat([of_keys, of_values], 0)?])
}

/// Inputs: queries, keys and values `[batch, tokens, heads · D]`, a bias of all three, a mask of integers for keys, what is added to the scores,
/// and the keys and values of earlier calls `[batch, heads, P, D]`. Keys and values may be `[batch, heads, C, D]`. Outputs: the joined means, all
/// keys, all values.
pub(super) fn multi_head(node: &mut Expansion<'_, '_>) -> Translated {
    node.refuse_inputs(&[(8, "past_sequence_length"), (9, "cache_indirection")])?;
    if node.node.used.len() > 3 {
        return Err(Refusal("output 3 (the scores) is not supported".to_owned()));
    }
    let shared = Shared::of(node)?;
    let mut inputs = [node.input(0)?, node.input(1)?, node.input(2)?];
    if node.rank(inputs[0], "the queries")? != 3 {
        return Err(Refusal("packed queries, keys and values are not supported".to_owned()));
    }
    if let Some(bias) = node.optional(3) {
        let mut start = 0;
        for value in &mut inputs {
            let rank = node.rank(*value, "an input")?;
            let width = node.known(*value, rank - 1).filter(|_| rank == 3);
            let width =
                width.ok_or_else(|| Refusal("the width of what has a bias must be known".to_owned()))?;
            let own = node.slice(bias, 0, Extent::Fixed(start), Extent::Fixed(start + width))?;
            *value = node.call("add", &[*value, own], &[])?;
            start += width;
        }
    }
    for value in &mut inputs {
        if node.rank(*value, "keys and values")? == 3 {
            *value = node.split_heads(*value, shared.heads)?;
        }
    }
    for (place, value) in [(6, 1), (7, 2)] {
        if let Some(past) = node.optional(place) {
            inputs[value] = node.concat([past, inputs[value]], 2)?;
        }
    }
    let (mask, bias) = (node.optional(4), node.optional(5));
    let means = shared.attend(node, inputs, mask, bias)?;
    let mut results = vec![means, inputs[1], inputs[2]];
    results.truncate(node.node.used.len().max(1));
    Ok(results)
}

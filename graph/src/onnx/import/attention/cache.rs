//! `TensorScatter`: keys or values of new tokens, written into those of earlier ones.

use super::Translated;
use crate::ir::{Attribute, ValueId};
use crate::onnx::import::expansion::{Expansion, Extent};
use crate::onnx::import::upgrade::Refusal;
use crate::tensor::ElementType;

/// Inputs: a buffer `[batch, …, C, D]`, new elements with fewer places along a dimension, and for each sequence the place where they begin, or
/// nothing where they all begin at the front. In a circular buffer, the first place follows the last one.
pub(super) fn tensor_scatter(node: &mut Expansion<'_, '_>) -> Translated {
    let (buffer, new) = (node.input(0)?, node.input(1)?);
    let rank = node.rank(buffer, "the buffer")?;
    let along = node.count("axis")?.unwrap_or(-2);
    let along = if along < 0 { along + rank as i64 } else { along };
    if !(1..rank as i64).contains(&along) {
        return Err(Refusal(format!("attribute axis must name a dimension behind the first one of {rank}")));
    }
    let is_circular = match &node.text("mode")?[..] {
        "" | "linear" => false,
        "circular" => true,
        other => return Err(Refusal(format!("attribute mode must be linear or circular, not {other}"))),
    };
    // The dimension of tokens stands behind that of sequences.
    let mut order: Vec<i64> = (0..rank as i64).collect();
    order.remove(along as usize);
    order.insert(1, along);
    let [buffer, new] = [node.transpose(buffer, &order)?, node.transpose(new, &order)?];
    let places = relative(node, buffer, node.optional(2), is_circular)?;
    let (zero, one, count) = (node.integers(&[0]), node.integers(&[1]), node.extent(Extent::Of(new, 1))?);
    let is_behind = node.call("greater_or_equal", &[places, zero], &[])?;
    let is_before = node.call("less", &[places, count], &[])?;
    let is_new = node.call("and", &[is_behind, is_before], &[])?;
    // Where nothing new is written, any place serves.
    let last = node.call("sub", &[count, one], &[])?;
    let source = node.call("max", &[places, zero], &[])?;
    let source = node.call("min", &[source, last], &[])?;
    let source = node.unsqueeze(source, &[2])?;
    let written = node.call("gather_nd", &[new, source], &[("batch_dims", Attribute::Int(1))])?;
    let behind: Vec<i64> = (2..rank as i64).collect();
    let is_new = if behind.is_empty() { is_new } else { node.unsqueeze(is_new, &behind)? };
    let merged = node.call("where", &[is_new, written, buffer], &[])?;
    let mut back: Vec<i64> = (0..rank as i64).collect();
    back.remove(1);
    back.insert(along as usize, 1);
    Ok(vec![node.transpose(merged, &back)?])
}

/// How far behind the first new token each place of a buffer lies: `[batch, C]`.
fn relative(
    node: &mut Expansion<'_, '_>,
    buffer: ValueId,
    start: Option<ValueId>,
    is_circular: bool,
) -> Result<ValueId, Refusal> {
    let start = match start {
        Some(start) => node.call("cast", &[start], &[("to", Attribute::Element(ElementType::I64))])?,
        None => {
            let batch = node.extent(Extent::Of(buffer, 0))?;
            let zero = node.integers(&[0]);
            node.call("expand", &[zero, batch], &[])?
        }
    };
    let places = node.places(Extent::Of(buffer, 1), 0)?;
    let start = node.unsqueeze(start, &[1])?;
    let places = node.call("sub", &[places, start], &[])?;
    if !is_circular {
        return Ok(places);
    }
    let length = node.extent(Extent::Of(buffer, 1))?;
    node.call("mod", &[places, length], &[])
}

//! `MatMulNBits`: products with a matrix of integers that share a scale in blocks.
//!
//! Constant matrices are arranged in panels when a model is loaded, and keep their bits.

use super::{Quantised, Translated, reshape};
use crate::ir::{Attribute, Attributes, ValueId};
use crate::onnx::import::upgrade::Refusal;
use crate::tensor::{ElementType, HostTensor};

/// The columns of a panel: two vectors of AVX-512, four of AVX2.
const LANES: i64 = 32;

/// The sizes of a matrix, as attributes give them.
#[derive(Clone, Copy)]
struct Sizes {
    bits: i64,
    /// Integers in a block.
    block: i64,
    depth: i64,
    columns: i64,
}

impl Sizes {
    fn of(node: &mut Quantised<'_, '_>) -> Result<Self, Refusal> {
        let (bits, block) = (node.int("bits", 4)?, node.int("block_size", 32)?);
        let (depth, columns) = (node.int("K", 0)?, node.int("N", 0)?);
        let sizes = 1..1 << 24;
        let is_known = matches!(bits, 2 | 4 | 8) && (16..1 << 16).contains(&block) && block % 16 == 0;
        if !is_known || !sizes.contains(&depth) || !sizes.contains(&columns) {
            return Err(Refusal(format!(
                "{bits} bits in blocks of {block}, K = {depth}, N = {columns}: 2, 4 or 8 bits in blocks of a multiple of 16 are expected"
            )));
        }
        Ok(Sizes { bits, block, depth, columns })
    }

    fn per_byte(self) -> i64 {
        8 / self.bits
    }

    /// Blocks in a column.
    fn blocks(self) -> i64 {
        (self.depth + self.block - 1) / self.block
    }

    fn lanes(self) -> i64 {
        LANES.min(self.columns)
    }

    fn panels(self) -> i64 {
        (self.columns + self.lanes() - 1) / self.lanes()
    }
}

/// Inputs: a, bytes, scales, zero points, an order of the rows, and a bias; the last three may be left out.
pub(super) fn product(node: &mut Quantised<'_, '_>) -> Translated {
    let sizes = Sizes::of(node)?;
    node.node.attributes.take("accuracy_level");
    for place in 4..node.node.inputs.len() {
        if place != 5 && node.optional(place).is_some() {
            return Err(Refusal(format!("input {place} is not supported")));
        }
    }
    let (blocks, columns) = (sizes.blocks(), sizes.columns);
    let (bytes, scales) = (node.input(1)?, node.input(2)?);
    let scales = reshape(node, scales, &[columns, blocks])?;
    let offsets = node.optional(3).map(|zeros| offsets(node, sizes, zeros, scales)).transpose()?;
    let bytes = reshape(node, bytes, &[columns, blocks, sizes.block / sizes.per_byte()])?;
    let bytes = into_panels(node, sizes, bytes, &[sizes.block / sizes.per_byte()])?;
    let scales = into_panels(node, sizes, scales, &[])?;
    let mut inputs = vec![fill_last_block(node, sizes)?, bytes, scales];
    if let Some(offsets) = offsets {
        inputs.push(into_panels(node, sizes, offsets, &[])?);
    }
    let attributes =
        Attributes::none().with("bits", Attribute::Int(sizes.bits)).with("columns", Attribute::Int(columns));
    let mut product = node.call("block_product", &inputs, attributes)?;
    if let Some(bias) = node.optional(5) {
        product = node.call("add", &[product, bias], Attributes::none())?;
    }
    Ok(vec![product])
}

/// Rows with zeros for the integers of the last block that lie beyond the depth.
fn fill_last_block(node: &mut Quantised<'_, '_>, sizes: Sizes) -> Result<ValueId, Refusal> {
    let a = node.input(0)?;
    let missing = sizes.blocks() * sizes.block - sizes.depth;
    if missing == 0 { Ok(a) } else { pad(node, a, -1, missing) }
}

/// Appends zeros along one dimension.
fn pad(node: &mut Quantised<'_, '_>, value: ValueId, dimension: i64, count: i64) -> Result<ValueId, Refusal> {
    let pads = node.builder.constant(HostTensor::vector(vec![0, count]));
    let dimensions = node.builder.constant(HostTensor::vector(vec![dimension]));
    let inputs = vec![Some(value), Some(pads), None, Some(dimensions)];
    node.call_optional("pad", inputs, Attributes::none())
}

/// From columns, blocks and fields to panels, blocks, fields and lanes.
fn into_panels(
    node: &mut Quantised<'_, '_>,
    sizes: Sizes,
    mut value: ValueId,
    fields: &[i64],
) -> Result<ValueId, Refusal> {
    let missing = sizes.panels() * sizes.lanes() - sizes.columns;
    if missing > 0 {
        value = pad(node, value, 0, missing)?;
    }
    let shape = [&[sizes.panels(), sizes.lanes(), sizes.blocks()], fields].concat();
    let panels = reshape(node, value, &shape)?;
    let mut order: Vec<i64> = (0..shape.len() as i64).filter(|&dimension| dimension != 1).collect();
    order.push(1);
    node.call("transpose", &[panels], Attributes::none().with("perm", Attribute::Ints(order)))
}

/// The number that each block's middle integer stands for: that of the middle less the zero point.
fn offsets(
    node: &mut Quantised<'_, '_>,
    sizes: Sizes,
    zeros: ValueId,
    scales: ValueId,
) -> Result<ValueId, Refusal> {
    let (blocks, columns) = (sizes.blocks(), sizes.columns);
    if node.builder.ty(zeros).element() == Some(ElementType::U8) {
        // The zero points of a column fill whole bytes.
        let bytes = (blocks + sizes.per_byte() - 1) / sizes.per_byte();
        let zeros = reshape(node, zeros, &[columns, bytes])?;
        let attributes = Attributes::none().with("bits", Attribute::Int(sizes.bits));
        return node.call("block_offsets", &[scales, zeros], attributes);
    }
    let zeros = reshape(node, zeros, &[columns, blocks])?;
    let like = node.call("cast_like", &[zeros, scales], Attributes::none())?;
    let middle = node.builder.constant(HostTensor::scalar((1i64 << (sizes.bits - 1)) as f32));
    let middle = node.call("cast_like", &[middle, scales], Attributes::none())?;
    let distance = node.call("sub", &[middle, like], Attributes::none())?;
    node.call("mul", &[distance, scales], Attributes::none())
}

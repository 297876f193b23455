//! `GatherBlockQuantized`: rows of a table of integers that share a scale in blocks, such as the embeddings of a language model.
//!
//! Integers, scales and zero points are gathered as they lie, and only the rows that were chosen become numbers.

use super::{Quantised, Translated};
use crate::ir::{Attribute, Attributes, ValueId};
use crate::onnx::import::upgrade::{Refusal, known_extent};
use crate::tensor::{ElementType, HostTensor};

/// The integers of a table.
struct Table {
    bits: i64,
    block: i64,
    /// Extents in elements as they are stored: bytes where integers share bytes.
    extents: Vec<i64>,
    gather_axis: i64,
    quantize_axis: i64,
    element: ElementType,
}

impl Table {
    fn of(node: &mut Quantised<'_, '_>) -> Result<Self, Refusal> {
        let (bits, block) = (node.int("bits", 4)?, node.int("block_size", 128)?);
        let (gather, quantize) = (node.int("gather_axis", 0)?, node.int("quantize_axis", 1)?);
        let data = node.input(0)?;
        let ty = node.builder.ty(data);
        let extents: Option<Vec<i64>> =
            ty.extents().and_then(|extents| extents.iter().map(known_extent).collect());
        let (Some(element), Some(extents)) = (ty.element(), extents) else {
            return Err(Refusal("the extents of the table must be known".to_owned()));
        };
        let is_known = match element {
            ElementType::U8 => matches!(bits, 2 | 4 | 8),
            ElementType::I4 | ElementType::U4 => bits == 4,
            _ => false,
        };
        if !is_known {
            return Err(Refusal(format!(
                "{bits} bits in elements of {element}: 2, 4 or 8 bits in u8, or 4 bits in i4 or u4 are expected"
            )));
        }
        if block < 16 || block & (block - 1) != 0 {
            return Err(Refusal(format!(
                "attribute block_size is {block}: a power of two from 16 on is expected"
            )));
        }
        let rank = extents.len() as i64;
        let axis = |name: &str, axis: i64| {
            let place = if axis < 0 { axis + rank } else { axis };
            let is_inside = (0..rank).contains(&place);
            is_inside
                .then_some(place)
                .ok_or_else(|| Refusal(format!("attribute {name} is {axis} for a table of rank {rank}")))
        };
        let (gather_axis, quantize_axis) = (axis("gather_axis", gather)?, axis("quantize_axis", quantize)?);
        let table = Table { bits, block, extents, gather_axis, quantize_axis, element };
        if gather_axis == quantize_axis || (table.per_element() > 1 && gather_axis == rank - 1) {
            return Err(Refusal(format!(
                "rows cannot be gathered along dimension {gather_axis}, which is divided into blocks or bytes"
            )));
        }
        Ok(table)
    }

    /// Integers in an element.
    fn per_element(&self) -> i64 {
        if self.element == ElementType::U8 { 8 / self.bits } else { 1 }
    }

    fn rank(&self) -> i64 {
        self.extents.len() as i64
    }

    /// The extent of a dimension in integers.
    fn integers(&self, dimension: i64) -> i64 {
        let is_packed = dimension == self.rank() - 1;
        self.extents[dimension as usize] * if is_packed { self.per_element() } else { 1 }
    }

    /// The integer that stands for zero where no zero points are given.
    fn zero(&self) -> i64 {
        if self.element == ElementType::U8 { 1 << (self.bits - 1) } else { 0 }
    }

    /// The extents of scales: one place for each block.
    fn blocks(&self) -> Vec<i64> {
        let blocks = |dimension: i64| {
            let integers = self.integers(dimension);
            if dimension == self.quantize_axis { (integers + self.block - 1) / self.block } else { integers }
        };
        (0..self.rank()).map(blocks).collect()
    }

    /// The extents of zero points, which share elements as the table's integers do.
    fn zeros(&self) -> Vec<i64> {
        let mut extents = self.blocks();
        let last = extents.last_mut().expect("a table has two dimensions");
        *last = (*last + self.per_element() - 1) / self.per_element();
        extents
    }
}

/// Checks that an input has a shape.
fn check_shape(
    node: &Quantised<'_, '_>,
    value: ValueId,
    name: &str,
    expected: &[i64],
) -> Result<(), Refusal> {
    let found = node.builder.ty(value).extents();
    let is_equal = found.is_some_and(|found| {
        found.len() == expected.len()
            && found.iter().zip(expected).all(|(found, expected)| found.as_constant() == Some(*expected))
    });
    is_equal.then_some(()).ok_or_else(|| Refusal(format!("{name} of shape {expected:?} are expected")))
}

/// Inputs: integers, indices, scales, and zero points that may be left out.
pub(super) fn gather(node: &mut Quantised<'_, '_>) -> Translated {
    let table = Table::of(node)?;
    let (data, indices, scales) = (node.input(0)?, node.input(1)?, node.input(2)?);
    check_shape(node, scales, "scales", &table.blocks())?;
    let rows = |node: &mut Quantised<'_, '_>, value| select(node, value, indices, table.gather_axis);
    // Dimensions behind the gathered one move by those of the indices.
    let Some(rank) = node.builder.ty(indices).extents().map(|extents| extents.len() as i64) else {
        return Err(Refusal("the rank of the indices must be known".to_owned()));
    };
    let moved = |axis: i64| if axis > table.gather_axis { axis + rank - 1 } else { axis };
    let (blocks_axis, last) = (moved(table.quantize_axis), moved(table.rank() - 1));
    let of_blocks: Vec<i64> =
        (0..table.integers(table.quantize_axis)).map(|place| place / table.block).collect();
    let of_blocks = node.builder.constant(HostTensor::vector(of_blocks));
    let gathered = rows(node, data)?;
    let integers = unpack(node, &table, gathered, last)?;
    let gathered = rows(node, scales)?;
    let scale = select(node, gathered, of_blocks, blocks_axis)?;
    let zeros = match node.optional(3) {
        Some(zeros) => {
            check_shape(node, zeros, "zero points", &table.zeros())?;
            let gathered = rows(node, zeros)?;
            let zeros = unpack(node, &table, gathered, last)?;
            // The last byte of a row may have more integers than the row has blocks.
            select(node, zeros, of_blocks, blocks_axis)?
        }
        None => node.builder.constant(HostTensor::scalar(table.zero() as f32)),
    };
    let integers = node.call("cast_like", &[integers, scale], Attributes::none())?;
    let zeros = node.call("cast_like", &[zeros, scale], Attributes::none())?;
    let distance = node.call("sub", &[integers, zeros], Attributes::none())?;
    Ok(vec![node.call("mul", &[distance, scale], Attributes::none())?])
}

fn select(
    node: &mut Quantised<'_, '_>,
    value: ValueId,
    indices: ValueId,
    axis: i64,
) -> Result<ValueId, Refusal> {
    node.call("gather", &[value, indices], Attributes::none().with("axis", Attribute::Int(axis)))
}

/// The integers of elements that hold several along their last dimension, the lowest bits first.
fn unpack(
    node: &mut Quantised<'_, '_>,
    table: &Table,
    value: ValueId,
    last: i64,
) -> Result<ValueId, Refusal> {
    let per_element = table.per_element();
    if per_element == 1 {
        return Ok(value);
    }
    let extents = node.builder.ty(value).extents();
    let Some(bytes) = extents.and_then(|extents| extents.last()).and_then(|extent| extent.as_constant())
    else {
        return Err(Refusal("the number of bytes in a row must be known".to_owned()));
    };
    let places = 0..bytes * per_element;
    let bytes =
        node.builder.constant(HostTensor::vector(places.clone().map(|place| place / per_element).collect()));
    let shifts = places.map(|place| (place % per_element * table.bits) as u8).collect();
    let shifts = node.builder.constant(HostTensor::vector::<u8>(shifts));
    let mask = node.builder.constant(HostTensor::scalar(((1_i64 << table.bits) - 1) as u8));
    let bits = select(node, value, bytes, last)?;
    let right = Attributes::none().with("direction", Attribute::Text("RIGHT".into()));
    let bits = node.call("bit_shift", &[bits, shifts], right)?;
    node.call("bitwise_and", &[bits, mask], Attributes::none())
}

//! Scales and zero points.

use tilewright_core::build::{KernelBuilder, Value};
use tilewright_core::expr::BinaryOp;

use crate::legalise::emitter::{Emitter, Tensor};
use crate::legalise::operands::Operands;
use crate::legalise::{Unsupported, unsupported};
use crate::operator::axis;
use crate::symbolic::SymInt;

/// A scale or a zero point of a tensor.
pub(super) struct Parameter {
    pub(super) tensor: Tensor,
    spread: Spread,
}

/// Which number belongs to which element.
enum Spread {
    /// There is one number.
    All,
    /// The numbers belong to the places of a dimension.
    Axis(usize),
    /// Each number belongs to a block of a dimension: the dimension, and the elements of a block along it.
    Blocks(usize, i64),
}

impl Parameter {
    /// The parameter of a tensor of some extents that an input of a call gives.
    pub(super) fn new(
        tensor: Tensor,
        extents: &[SymInt],
        dimension: i64,
        block: i64,
    ) -> Result<Self, Unsupported> {
        if tensor.extents.iter().all(|extent| extent.is(1)) {
            return Ok(Parameter { tensor, spread: Spread::All });
        }
        let dimension = axis(dimension, extents.len())?;
        if tensor.rank() == 1 {
            if tensor.extents[0] != extents[dimension] {
                unsupported!(
                    "whether {} scales or zero points fit extent {} depends on the call",
                    tensor.extents[0],
                    extents[dimension]
                );
            }
            return Ok(Parameter { tensor, spread: Spread::Axis(dimension) });
        }
        let size = |extent: &SymInt| extent.as_constant().filter(|&size| size > 0);
        let (Some(places), Some(blocks), true) = (
            extents.get(dimension).and_then(size),
            tensor.extents.get(dimension).and_then(size),
            tensor.rank() == extents.len(),
        ) else {
            unsupported!("blocks of an extent that depends on the call")
        };
        let length = if block > 0 { block } else { (places + blocks - 1) / blocks };
        let others = (0..extents.len()).all(|d| d == dimension || tensor.extents[d] == extents[d]);
        if !others || (places + length - 1) / length != blocks {
            unsupported!("{blocks} blocks of {length} do not fit extent {places}");
        }
        Ok(Parameter { tensor, spread: Spread::Blocks(dimension, length) })
    }

    /// The parameter that an input of a call gives, along the call's axis.
    pub(super) fn of(
        emitter: &mut Emitter,
        operands: &Operands<'_>,
        place: usize,
        extents: &[SymInt],
    ) -> Result<Option<Self>, Unsupported> {
        let Some(tensor) = operands.optional(emitter, place)? else { return Ok(None) };
        let attributes = operands.attributes();
        let block = if operands.has("block_size") { attributes.int_or_default("block_size") } else { 0 };
        Self::new(tensor, extents, attributes.int_or_default("axis"), block).map(Some)
    }

    /// The scale of a conversion: its second input, which it has to have.
    pub(super) fn scale(
        emitter: &mut Emitter,
        operands: &Operands<'_>,
        extents: &[SymInt],
    ) -> Result<Self, Unsupported> {
        Self::of(emitter, operands, 1, extents)?
            .ok_or_else(|| Unsupported::Fault("the scale is missing".to_owned()))
    }

    /// Whether one number belongs to all elements.
    pub(super) fn is_one(&self) -> bool {
        matches!(self.spread, Spread::All)
    }

    /// The number that belongs to an element.
    pub(super) fn at(&self, builder: &KernelBuilder, indices: &[Value]) -> Value {
        let zeros = || vec![Value::int(0); self.tensor.rank()];
        let places = match self.spread {
            Spread::All => zeros(),
            Spread::Axis(dimension) => vec![indices[dimension].clone()],
            Spread::Blocks(dimension, length) => {
                let mut places = indices.to_vec();
                places[dimension] = places[dimension].binary(BinaryOp::Div, Value::int(length));
                places
            }
        };
        self.tensor.at(builder, &places)
    }
}

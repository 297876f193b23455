//! Reading places that other tensors name.

use tilewright_core::build::{KernelBuilder, Value};
use tilewright_core::dtype::DType;

use crate::legalise::emitter::{Emitter, Tensor};
use crate::legalise::operands::Operands;
use crate::legalise::place::{place, require_indices};
use crate::legalise::scalar::{add, less, subtract};
use crate::legalise::{Unsupported, unsupported};
use crate::operator::axis;
use crate::symbolic::SymInt;

type Emitted = Result<Vec<Tensor>, Unsupported>;

/// For each place of the indices the element at this place, but for one dimension, along which the index says where.
pub(crate) fn gather_elements(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let (x, indices) = (operands.tensor(emitter, 0)?, operands.tensor(emitter, 1)?);
    require_indices(&indices)?;
    let along = operands.axis("axis", x.rank())?;
    require_inside(emitter, &x, &indices, along)?;
    let end = emitter.value(&x.extents[along])?;
    let result = emitter.compute(x.element, &indices.extents, &mut |builder, own| {
        let mut places = own.to_vec();
        places[along] = place(&indices.at(builder, own), &end);
        x.at(builder, &places)
    })?;
    Ok(vec![result])
}

/// Refuses indices that are larger than the tensor in another dimension than `along`, or may be.
pub(super) fn require_inside(
    emitter: &Emitter,
    x: &Tensor,
    indices: &Tensor,
    along: usize,
) -> Result<(), Unsupported> {
    if indices.rank() != x.rank() {
        unsupported!("indices and tensor have different ranks");
    }
    for (dimension, (own, extent)) in indices.extents.iter().zip(&x.extents).enumerate() {
        let fits = own == extent || (own.as_constant().is_some() && extent.as_constant().is_some());
        if dimension != along && (!fits || !emitter.at_most(own, extent)?) {
            unsupported!("whether {own} indices fit {extent} elements depends on the call");
        }
    }
    Ok(())
}

/// The numbers of one row of indices as places of the dimensions from `first` on.
pub(super) fn row(builder: &KernelBuilder, indices: &Tensor, outer: &[Value], ends: &[Value]) -> Vec<Value> {
    let number = |(depth, end): (usize, &Value)| {
        let at = [outer, &[Value::int(depth as i64)]].concat();
        place(&indices.at(builder, &at), end)
    };
    ends.iter().enumerate().map(number).collect()
}

/// How many dimensions each row of indices names.
pub(super) fn depth(indices: &Tensor) -> Result<usize, Unsupported> {
    let depth = indices.extents.last().and_then(SymInt::as_constant);
    let Some(depth) = depth.and_then(|depth| usize::try_from(depth).ok()).filter(|&depth| depth > 0) else {
        unsupported!("the number of indices in a row depends on the call")
    };
    Ok(depth)
}

/// The slices that rows of indices name.
pub(crate) fn gather_nd(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let (x, indices) = (operands.tensor(emitter, 0)?, operands.tensor(emitter, 1)?);
    require_indices(&indices)?;
    let batch = usize::try_from(operands.attributes().int_or_default("batch_dims")).unwrap_or(usize::MAX);
    let (depth, outer) = (depth(&indices)?, indices.rank() - 1);
    if batch > outer
        || batch.saturating_add(depth) > x.rank()
        || x.extents[..batch] != indices.extents[..batch]
    {
        unsupported!("indices do not fit the tensor");
    }
    let ends = emitter.values(&x.extents[batch..batch + depth])?;
    let extents = [&indices.extents[..outer], &x.extents[batch + depth..]].concat();
    let result = emitter.compute(x.element, &extents, &mut |builder, own| {
        let (rows, inner) = own.split_at(outer);
        let named = row(builder, &indices, rows, &ends);
        x.at(builder, &[&own[..batch], &named, inner].concat())
    })?;
    Ok(vec![result])
}

/// The first elements of each sequence turned round, as many as its length says.
pub(crate) fn reverse_sequence(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let (x, lengths) = (operands.tensor(emitter, 0)?, operands.tensor(emitter, 1)?);
    require_indices(&lengths)?;
    let attributes = operands.attributes();
    let batch = axis(attributes.int_or_default("batch_axis"), x.rank())?;
    let time = axis(attributes.int_or_default("time_axis"), x.rank())?;
    if batch == time || lengths.extents != x.extents[batch..=batch] {
        unsupported!("lengths do not fit the sequences");
    }
    let result = emitter.compute(x.element, &x.extents, &mut |builder, own| {
        let length = lengths.at(builder, &own[batch..=batch]).cast(DType::I64);
        let step = own[time].cast(DType::I64);
        let turned = subtract(&add(&length, &Value::typed_int(DType::I64, -1)), &step);
        let mut places = own.to_vec();
        places[time] = less(&step, &length).select(turned, step);
        x.at(builder, &places)
    })?;
    Ok(vec![result])
}

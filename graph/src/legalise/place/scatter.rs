//! Writing places that other tensors name, one update after the other in row-major order.

use tilewright_core::build::{KernelBuilder, UpdateOp, Value};
use tilewright_core::dtype::DType;

use crate::legalise::emitter::{Emitter, Tensor, here};
use crate::legalise::operands::Operands;
use crate::legalise::place::gather::{depth, require_inside, row};
use crate::legalise::place::{place, require_indices};
use crate::legalise::scalar::{add, larger, multiply, smaller};
use crate::legalise::{Unsupported, unsupported};
use crate::symbolic::SymInt;

type Emitted = Result<Vec<Tensor>, Unsupported>;

/// A copy of a tensor in the graph's order, which updates change.
fn copy(emitter: &mut Emitter, x: &Tensor) -> Result<Tensor, Unsupported> {
    let result = emitter.scratch(x.element, &x.extents)?;
    let loops: Vec<usize> = (0..x.rank()).collect();
    emitter.nest_in(&loops, &x.extents, &mut |builder, indices| {
        let value = x.at(builder, indices);
        result.store(builder, indices, UpdateOp::Set, value, here!());
    })?;
    Ok(result)
}

/// How an update changes an element.
struct Change {
    reduction: String,
    dtype: DType,
}

impl Change {
    fn of(operands: &Operands<'_>, x: &Tensor, updates: &Tensor) -> Result<Self, Unsupported> {
        let reduction = operands.text("reduction").to_owned();
        if !matches!(&reduction[..], "none" | "add" | "mul" | "max" | "min") {
            unsupported!("reduction {reduction} has no kernel form");
        }
        if x.element != updates.element || (x.dtype == DType::Bool && reduction != "none") {
            unsupported!("updates of type {} change elements of type {}", updates.element, x.element);
        }
        Ok(Change { reduction, dtype: x.dtype })
    }

    fn apply(&self, builder: &mut KernelBuilder, result: &Tensor, places: &[Value], update: Value) {
        let old = result.at(builder, places);
        let value = match &self.reduction[..] {
            "add" => add(&old, &update),
            "mul" => multiply(&old, &update),
            "max" => larger(&old, &update, self.dtype),
            "min" => smaller(&old, &update, self.dtype),
            _ => update,
        };
        result.store(builder, places, UpdateOp::Set, value, here!());
    }
}

/// Changes, for each update, the element at its place but for one dimension, along which the index says where.
pub(crate) fn scatter_elements(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let (x, indices) = (operands.tensor(emitter, 0)?, operands.tensor(emitter, 1)?);
    let updates = operands.tensor(emitter, 2)?;
    require_indices(&indices)?;
    let along = operands.axis("axis", x.rank())?;
    require_inside(emitter, &x, &indices, along)?;
    if updates.extents != indices.extents {
        unsupported!("updates do not fit the indices");
    }
    let change = Change::of(operands, &x, &updates)?;
    let end = emitter.value(&x.extents[along])?;
    let result = copy(emitter, &x)?;
    let loops: Vec<usize> = (0..x.rank()).collect();
    emitter.nest_in(&loops, &indices.extents, &mut |builder, own| {
        let mut places = own.to_vec();
        places[along] = place(&indices.at(builder, own), &end);
        let update = updates.at(builder, own);
        change.apply(builder, &result, &places, update);
    })?;
    Ok(vec![result])
}

/// Changes the slices that rows of indices name.
pub(crate) fn scatter_nd(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let (x, indices) = (operands.tensor(emitter, 0)?, operands.tensor(emitter, 1)?);
    let updates = operands.tensor(emitter, 2)?;
    require_indices(&indices)?;
    let (depth, outer) = (depth(&indices)?, indices.rank() - 1);
    if depth > x.rank() {
        unsupported!("indices do not fit the tensor");
    }
    let extents: Vec<SymInt> = [&indices.extents[..outer], &x.extents[depth..]].concat();
    if updates.extents != extents {
        unsupported!("updates do not fit the indices");
    }
    let change = Change::of(operands, &x, &updates)?;
    let ends = emitter.values(&x.extents[..depth])?;
    let result = copy(emitter, &x)?;
    let loops: Vec<usize> = (0..extents.len()).collect();
    emitter.nest_in(&loops, &extents, &mut |builder, own| {
        let (rows, inner) = own.split_at(outer);
        let places = [&row(builder, &indices, rows, &ends)[..], inner].concat();
        let update = updates.at(builder, own);
        change.apply(builder, &result, &places, update);
    })?;
    Ok(vec![result])
}

//! Elements that their places decide.

use tilewright_core::build::Value;
use tilewright_core::dtype::DType;
use tilewright_core::expr::BinaryOp;

use crate::legalise::emitter::{Emitter, Tensor};
use crate::legalise::operands::Operands;
use crate::legalise::place::place;
use crate::legalise::scalar::{number, subtract};
use crate::legalise::{Unsupported, unsupported};

type Emitted = Result<Vec<Tensor>, Unsupported>;

/// One value where a place is the one that an index names, and another value elsewhere.
pub(crate) fn one_hot(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let (indices, values) = (operands.tensor(emitter, 0)?, operands.tensor(emitter, 2)?);
    let &[depth] = &operands.integers(1)?[..] else { unsupported!("the depth must be one number") };
    if !matches!(indices.dtype, DType::I32 | DType::I64) || depth < 1 {
        unsupported!("indices of type {} and depth {depth} have no kernel form", indices.element);
    }
    if values.rank() != 1 || !values.extents[0].is(2) {
        unsupported!("the values must be two");
    }
    let along = operands.axis("axis", indices.rank() + 1)?;
    let mut extents = indices.extents.clone();
    extents.insert(along, depth.into());
    let end = Value::typed_int(DType::I64, depth);
    let result = emitter.compute(values.element, &extents, &mut |builder, own| {
        let mut places = own.to_vec();
        let here = places.remove(along).cast(DType::I64);
        let named = place(&indices.at(builder, &places), &end);
        let value = |which: i64| values.at(builder, &[Value::int(which)]);
        here.binary(BinaryOp::Eq, named).select(value(1), value(0))
    })?;
    Ok(vec![result])
}

/// The upper or lower triangles of matrices, with zeros elsewhere.
pub(crate) fn triangle(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    let diagonal = operands.optional_integers(1)?.and_then(|numbers| numbers.first().copied()).unwrap_or(0);
    let Some(rows) = x.rank().checked_sub(2) else { unsupported!("expected matrices") };
    let upper = operands.flag("upper");
    let zero = if x.dtype == DType::Bool { Value::bool(false) } else { number(x.dtype, 0.0) };
    let result = emitter.compute(x.element, &x.extents, &mut |builder, own| {
        let distance = subtract(&own[rows + 1].cast(DType::I64), &own[rows].cast(DType::I64));
        let op = if upper { BinaryOp::Ge } else { BinaryOp::Le };
        let kept = distance.binary(op, Value::typed_int(DType::I64, diagonal));
        kept.select(x.at(builder, own), zero.clone())
    })?;
    Ok(vec![result])
}

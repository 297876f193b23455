//! Sums and products of all elements up to each one.

use tilewright_core::build::{UpdateOp, Value};
use tilewright_core::dtype::DType;

use crate::legalise::emitter::{Emitter, Tensor, here, nest};
use crate::legalise::operands::Operands;
use crate::legalise::reduction::{join, split};
use crate::legalise::scalar::{add, computing, number, subtract};
use crate::legalise::{Unsupported, unsupported};
use crate::operator::axis;

/// Runs along a dimension, which an input names, from its first element or from its last one.
pub(crate) fn running(
    emitter: &mut Emitter,
    operands: &Operands<'_>,
    op: UpdateOp,
) -> Result<Vec<Tensor>, Unsupported> {
    let x = operands.tensor(emitter, 0)?;
    let &[along] = &operands.integers(1)?[..] else { unsupported!("the axis must be one number") };
    if x.dtype == DType::Bool {
        unsupported!("truth values are no numbers");
    }
    let along = axis(along, x.rank())?;
    let (exclusive, reverse) = (operands.flag("exclusive"), operands.flag("reverse"));
    let reduced: Vec<bool> = (0..x.rank()).map(|dimension| dimension == along).collect();
    let (outer, inner) = split(&x.extents, &reduced);
    let bounds = emitter.bounds(&inner)?;
    let last = add(&emitter.value(&inner[0])?, &Value::int(-1));
    let wide = computing(x.dtype);
    let identity = number(wide, if op == UpdateOp::Mul { 1.0 } else { 0.0 });
    let result = emitter.local(x.element, &x.extents, None)?;
    emitter.nest(&outer, &mut |builder, outer| {
        let total = builder.accumulator("total", identity.clone(), here!());
        nest(builder, &bounds, &mut Vec::new(), &mut |builder, inner| {
            let place = if reverse { subtract(&last, &inner[0]) } else { inner[0].clone() };
            let indices = join(&reduced, outer, &[place]);
            let value = x.at(builder, &indices).cast(wide);
            if exclusive {
                let so_far = builder.read(total).cast(x.dtype);
                result.store(builder, &indices, UpdateOp::Set, so_far, here!());
                builder.update(total, op, value, here!());
            } else {
                builder.update(total, op, value, here!());
                let so_far = builder.read(total).cast(x.dtype);
                result.store(builder, &indices, UpdateOp::Set, so_far, here!());
            }
        });
    })?;
    Ok(vec![result])
}

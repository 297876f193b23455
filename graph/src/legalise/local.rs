//! Normalisation by neighbouring channels (Krizhevsky et al. 2012).

use tilewright_core::build::{KernelBuilder, UpdateOp, Value};
use tilewright_core::expr::BinaryOp;

use crate::legalise::emitter::{Bound, Emitter, Tensor, here, nest};
use crate::legalise::operands::Operands;
use crate::legalise::pointwise::{inside, moved};
use crate::legalise::scalar::{add, computing, divide, multiply, number};
use crate::legalise::{Unsupported, unsupported};

/// How many neighbours are added without a loop.
const MOST_UNROLLED: i64 = 8;

/// Each element divided by a power of the sum of squares of its neighbours in other channels.
pub(crate) fn local_response(
    emitter: &mut Emitter,
    operands: &Operands<'_>,
) -> Result<Vec<Tensor>, Unsupported> {
    let x = operands.tensor(emitter, 0)?;
    if x.rank() < 2 || !x.dtype.is_float() {
        unsupported!("expected floats with batch and channels");
    }
    let size = operands.attributes().int_or_default("size").max(1);
    let before = (size - 1) / 2;
    let (wide, dtype) = (computing(x.dtype), x.dtype);
    let (alpha, beta) = (operands.float("alpha") / size as f64, operands.float("beta"));
    let bias = operands.float("bias");
    let end = emitter.value(&x.extents[1])?;
    let square = |builder: &KernelBuilder, own: &[Value], tap: &Value| {
        let channel = moved(&add(&own[1], tap), before);
        let mut places = own.to_vec();
        places[1] = channel.clone();
        let neighbour = x.at(builder, &places).cast(wide);
        inside(&channel, &end).select(multiply(&neighbour, &neighbour), number(wide, 0.0))
    };
    let finish = |builder: &KernelBuilder, own: &[Value], squares: &Value| {
        let base = add(&multiply(squares, &number(wide, alpha)), &number(wide, bias));
        divide(&x.at(builder, own).cast(wide), &base.binary(BinaryOp::Powf, number(wide, beta))).cast(dtype)
    };
    if size <= MOST_UNROLLED {
        let result = emitter.compute(x.element, &x.extents, &mut |builder, own| {
            let squares = (0..size).map(|tap| square(builder, own, &Value::int(tap)));
            let sum = squares.reduce(|sum, square| add(&sum, &square)).expect("there is a neighbour");
            finish(builder, own, &sum)
        })?;
        return Ok(vec![result]);
    }
    let result = emitter.local(x.element, &x.extents, None)?;
    let bound = [Bound::Many(Value::int(size))];
    emitter.nest(&x.extents, &mut |builder, own| {
        let sum = builder.accumulator("squares", number(wide, 0.0), here!());
        nest(builder, &bound, &mut Vec::new(), &mut |builder, tap| {
            let square = square(builder, own, &tap[0]);
            builder.update(sum, UpdateOp::Add, square, here!());
        });
        let value = finish(builder, own, &builder.read(sum));
        result.store(builder, own, UpdateOp::Set, value, here!());
    })?;
    Ok(vec![result])
}

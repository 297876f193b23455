//! Pooling over windows.

use tilewright_core::build::{KernelBuilder, UpdateOp, Value};
use tilewright_core::expr::BinaryOp;

use crate::legalise::emitter::{Emitter, Tensor, here, nest};
use crate::legalise::operands::Operands;
use crate::legalise::pointwise::{inside, moved, scaled};
use crate::legalise::scalar::{add, both, computing, divide, multiply, number, subtract};
use crate::legalise::window::Windows;
use crate::legalise::{Unsupported, unsupported};
use crate::symbolic::SymInt;
use crate::tensor::ElementType;

type Emitted = Result<Vec<Tensor>, Unsupported>;

fn windows(emitter: &Emitter, operands: &Operands<'_>, x: &Tensor) -> Result<Windows, Unsupported> {
    let kernel = operands.ints("kernel_shape").unwrap_or_default();
    let kernel: Vec<usize> = kernel.iter().map(|&extent| usize::try_from(extent).unwrap_or(0)).collect();
    if x.rank() < 2 || x.rank() - 2 != kernel.len() || !x.dtype.is_float() {
        unsupported!("only floats with batch, channels and a window have a kernel form");
    }
    Windows::of(emitter, operands, &x.extents[2..], &kernel)
}

/// The largest element of each window; NaN where one is.
pub(crate) fn max(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    if operands.outputs > 1 {
        unsupported!("places of the largest elements have no kernel form");
    }
    let x = operands.tensor(emitter, 0)?;
    let windows = windows(emitter, operands, &x)?;
    let pooled =
        pool(emitter, &x, &windows, (UpdateOp::Maximum, f64::NEG_INFINITY), &|_, _, value| value.clone())?;
    Ok(vec![pooled])
}

/// The mean of each window, of the places inside the input or inside input and padding.
pub(crate) fn average(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    let windows = windows(emitter, operands, &x)?;
    let with_padding = operands.flag("count_include_pad");
    let fixed = &windows.fixed;
    let wide = computing(x.dtype);
    let counted = (!with_padding && windows.has_padding()) || windows.overhangs();
    if counted && fixed.dilations.iter().any(|&dilation| dilation != 1) {
        unsupported!("the number of places of a dilated window in the padding has no kernel form");
    }
    let size: usize = fixed.kernel.iter().product();
    let counts = if counted { counts(emitter, &windows, &x, with_padding)? } else { Vec::new() };
    let mean = |builder: &KernelBuilder, window: &[Value], sum: &Value| {
        let along = counts
            .iter()
            .enumerate()
            .map(|(dimension, counts)| counts.at(builder, &window[dimension..=dimension]));
        let count = along.reduce(|count, along| multiply(&count, &along));
        divide(sum, &count.unwrap_or_else(|| number(wide, size as f64)))
    };
    Ok(vec![pool(emitter, &x, &windows, (UpdateOp::Add, 0.0), &mean)?])
}

/// For each dimension how many places of each window are counted along it, as numbers that are computed with: windows have them in
/// common, and vectors divide by them as they lie.
fn counts(
    emitter: &mut Emitter,
    windows: &Windows,
    x: &Tensor,
    with_padding: bool,
) -> Result<Vec<Tensor>, Unsupported> {
    let element = if computing(x.dtype) == x.dtype { x.element } else { ElementType::F32 };
    let ends = emitter.values(&x.extents[2..])?;
    let mut all = Vec::with_capacity(ends.len());
    for (dimension, end) in ends.iter().enumerate() {
        let extents = &windows.output[dimension..=dimension];
        let counts = emitter.scratch(element, extents)?;
        emitter.nest_in(&[0], extents, &mut |builder, own| {
            let count = places(windows, dimension, &own[0], end, with_padding).cast(counts.dtype);
            counts.store(builder, own, UpdateOp::Set, count, here!());
        })?;
        all.push(counts);
    }
    Ok(all)
}

/// How many places of a window are counted along one dimension.
fn places(windows: &Windows, dimension: usize, window: &Value, end: &Value, with_padding: bool) -> Value {
    let fixed = &windows.fixed;
    let (before, after) =
        if with_padding { (fixed.before[dimension], fixed.after[dimension]) } else { (0, 0) };
    let start = moved(&scaled(window, fixed.strides[dimension] as i64), fixed.before[dimension]);
    let last = add(&start, &Value::int(fixed.kernel[dimension] as i64));
    let last = last.binary(BinaryOp::Min, add(end, &Value::int(after)));
    let first = start.binary(BinaryOp::Max, Value::int(-before));
    subtract(&last, &first)
}

fn pool(
    emitter: &mut Emitter,
    x: &Tensor,
    windows: &Windows,
    (op, initial): (UpdateOp, f64),
    finish: &dyn Fn(&KernelBuilder, &[Value], &Value) -> Value,
) -> Result<Tensor, Unsupported> {
    let extents = [&x.extents[..2], &windows.output].concat();
    let kernel: Vec<SymInt> = windows.kernel();
    let (bounds, ends) = (emitter.bounds(&kernel)?, emitter.values(&x.extents[2..])?);
    let (dtype, wide) = (x.dtype, computing(x.dtype));
    let reaches = windows.has_padding();
    let result = emitter.local(x.element, &extents, None)?;
    emitter.nest(&extents, &mut |builder, outer| {
        let total = builder.accumulator("total", number(wide, initial), here!());
        nest(builder, &bounds, &mut Vec::new(), &mut |builder, taps| {
            let mut places = outer[..2].to_vec();
            let mut condition: Option<Value> = None;
            for (dimension, (window, tap)) in outer[2..].iter().zip(taps).enumerate() {
                let place = windows.place(dimension, window, tap);
                let inside = inside(&place, &ends[dimension]);
                condition = Some(condition.map_or(inside.clone(), |condition| both(&condition, &inside)));
                places.push(place);
            }
            let value = x.at(builder, &places).cast(wide);
            match condition.filter(|_| reaches) {
                Some(condition) => builder.if_else(
                    condition,
                    here!(),
                    |builder| builder.update(total, op, value, here!()),
                    |_| {},
                ),
                None => builder.update(total, op, value, here!()),
            }
        });
        let value = finish(builder, &outer[2..], &builder.read(total)).cast(dtype);
        result.store(builder, outer, UpdateOp::Set, value, here!());
    })?;
    Ok(result)
}

//! Pooling over windows.

use tilewright_core::build::{KernelBuilder, UpdateOp, Value};
use tilewright_core::dtype::DType;
use tilewright_core::expr::{BinaryOp, UnaryOp};

use crate::legalise::convolution::pad;
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
    if x.rank() < 2 || x.rank() - 2 != kernel.len() {
        unsupported!("only tensors with batch, channels and a window have a kernel form");
    }
    Windows::of(emitter, operands, &x.extents[2..], &kernel)
}

fn require_float(x: &Tensor) -> Result<(), Unsupported> {
    if !x.dtype.is_float() {
        unsupported!("means of {} have no kernel form", x.element);
    }
    Ok(())
}

/// How the elements of a window become one.
struct Pooling<'p> {
    op: UpdateOp,
    /// What changes nothing: the value of padding, and of a window without elements.
    neutral: f64,
    /// What each element contributes.
    term: &'p dyn Fn(&Value) -> Value,
    /// The result of a window at some place, from what its elements contribute together.
    finish: &'p dyn Fn(&KernelBuilder, &[Value], &Value) -> Value,
}

/// The largest element of each window; NaN where one is.
pub(crate) fn max(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    if operands.outputs > 1 {
        unsupported!("places of the largest elements have no kernel form");
    }
    let x = operands.tensor(emitter, 0)?;
    let windows = windows(emitter, operands, &x)?;
    let (op, neutral) = match x.dtype {
        DType::Bool => unsupported!("truth values are not compared"),
        dtype if dtype.is_float() => (UpdateOp::Maximum, f64::NEG_INFINITY),
        DType::I8 => (UpdateOp::Max, f64::from(i8::MIN)),
        DType::U8 => (UpdateOp::Max, 0.0),
        other => unsupported!("the largest of {other} have no kernel form"),
    };
    let pooling = Pooling { op, neutral, term: &Value::clone, finish: &|_, _, value| value.clone() };
    Ok(vec![pool(emitter, &x, &windows, &pooling)?])
}

/// The mean of each window, of the places inside the input or inside input and padding.
pub(crate) fn average(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    require_float(&x)?;
    let windows = windows(emitter, operands, &x)?;
    let with_padding = operands.flag("count_include_pad");
    let wide = computing(x.dtype);
    let counted = (!with_padding && windows.has_padding()) || windows.overhangs();
    let size: usize = windows.fixed.kernel.iter().product();
    let counts = if counted { counts(emitter, &windows, &x, with_padding)? } else { Vec::new() };
    let mean = |builder: &KernelBuilder, window: &[Value], sum: &Value| {
        let along = counts
            .iter()
            .enumerate()
            .map(|(dimension, counts)| counts.at(builder, &window[dimension..=dimension]));
        let count = along.reduce(|count, along| multiply(&count, &along));
        divide(sum, &count.unwrap_or_else(|| number(wide, size as f64)))
    };
    let pooling = Pooling { op: UpdateOp::Add, neutral: 0.0, term: &Value::clone, finish: &mean };
    Ok(vec![pool(emitter, &x, &windows, &pooling)?])
}

/// The norm of each window: the root of the sum of powers.
pub(crate) fn norm(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    require_float(&x)?;
    let windows = windows(emitter, operands, &x)?;
    let wide = computing(x.dtype);
    let order = operands.attributes().int_or_default("p");
    let power = |base: &Value, exponent: f64| base.binary(BinaryOp::Powf, number(wide, exponent));
    let term = |x: &Value| match order {
        1 => x.unary(UnaryOp::Abs),
        2 => multiply(x, x),
        order => power(&x.unary(UnaryOp::Abs), order as f64),
    };
    let finish = |_: &KernelBuilder, _: &[Value], sum: &Value| match order {
        1 => sum.clone(),
        2 => sum.unary(UnaryOp::Sqrt),
        order => power(sum, (order as f64).recip()),
    };
    let pooling = Pooling { op: UpdateOp::Add, neutral: 0.0, term: &term, finish: &finish };
    Ok(vec![pool(emitter, &x, &windows, &pooling)?])
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
    let (taps, dilation) = (fixed.kernel[dimension] as i64, fixed.dilations[dimension] as i64);
    // The number of places `start + tap · dilation` in front of a bound.
    let in_front = |bound: Value| {
        let distance = subtract(&bound, &start).binary(BinaryOp::Max, Value::int(0));
        let places = match dilation {
            1 => distance,
            _ => divide(&add(&distance, &Value::int(dilation - 1)), &Value::int(dilation)),
        };
        places.binary(BinaryOp::Min, Value::int(taps))
    };
    subtract(&in_front(add(end, &Value::int(after))), &in_front(Value::int(-before)))
}

fn pool(
    emitter: &mut Emitter,
    x: &Tensor,
    windows: &Windows,
    pooling: &Pooling<'_>,
) -> Result<Tensor, Unsupported> {
    let extents = [&x.extents[..2], &windows.output].concat();
    let kernel: Vec<SymInt> = windows.kernel();
    let (dtype, wide) = (x.dtype, computing(x.dtype));
    // Vectors run along the innermost dimension. Where that has padding, a condition would differ between their lanes, in each step of
    // the sum: a copy of the input with its padding has none. Where channels are innermost, all lanes have the same condition.
    let is_copied = windows.has_padding() && emitter.order(extents.len()).innermost() != Some(1);
    let x = if is_copied {
        &pad(emitter, x, windows, &number(dtype, pooling.neutral))?
    } else if x.order.innermost() != emitter.order(extents.len()).innermost() {
        // Windows overlap: a copy reads each element across the input's order once.
        &emitter.compute(x.element, &x.extents, &mut |builder, place| x.at(builder, place))?
    } else {
        x
    };
    let reaches = windows.has_padding() && !is_copied;
    let (bounds, ends) = (emitter.bounds(&kernel)?, emitter.values(&x.extents[2..])?);
    let result = emitter.local(x.element, &extents, None)?;
    emitter.nest(&extents, &mut |builder, outer| {
        let total = builder.accumulator("total", number(wide, pooling.neutral), here!());
        nest(builder, &bounds, &mut Vec::new(), &mut |builder, taps| {
            let mut places = outer[..2].to_vec();
            let mut condition: Option<Value> = None;
            for (dimension, (window, tap)) in outer[2..].iter().zip(taps).enumerate() {
                if is_copied {
                    places.push(windows.padded_place(dimension, window, tap));
                    continue;
                }
                let place = windows.place(dimension, window, tap);
                let inside = inside(&place, &ends[dimension]);
                condition = Some(condition.map_or(inside.clone(), |condition| both(&condition, &inside)));
                places.push(place);
            }
            let value = (pooling.term)(&x.at(builder, &places).cast(wide));
            match condition.filter(|_| reaches) {
                Some(condition) => builder.if_else(
                    condition,
                    here!(),
                    |builder| builder.update(total, pooling.op, value, here!()),
                    |_| {},
                ),
                None => builder.update(total, pooling.op, value, here!()),
            }
        });
        let value = (pooling.finish)(builder, &outer[2..], &builder.read(total)).cast(dtype);
        result.store(builder, outer, UpdateOp::Set, value, here!());
    })?;
    Ok(result)
}

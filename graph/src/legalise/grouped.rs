//! Normalisation of groups of channels, of single channels, and of any dimensions.

use tilewright_core::build::{KernelBuilder, UpdateOp, Value};
use tilewright_core::expr::UnaryOp;

use crate::legalise::emitter::{Emitter, Tensor, here, nest};
use crate::legalise::operands::Operands;
use crate::legalise::reduction::{join, product, split};
use crate::legalise::scalar::{add, computing, divide, multiply, number, subtract};
use crate::legalise::{Unsupported, unsupported};
use crate::operator::axis;
use crate::symbolic::SymInt;

type Emitted = Result<Vec<Tensor>, Unsupported>;

/// The indices of an element, from those of two nests of loops.
type Place<'a> = &'a dyn Fn(&[Value], &[Value]) -> Vec<Value>;

/// Elements that are normalised together: loops over the sets, and loops inside of each set.
struct Sets<'a> {
    outer: Vec<SymInt>,
    inner: Vec<SymInt>,
    /// The indices of an element, from those of both loops.
    place: Place<'a>,
}

/// The factor with which distances to the mean are multiplied, from the variance.
type Inverse<'a> = &'a dyn Fn(&Value) -> Value;

/// Elements relative to mean and deviation of their set; `finish` makes the result of the normalised element at its indices.
fn normalise(
    emitter: &mut Emitter,
    x: &Tensor,
    sets: &Sets<'_>,
    inverse: Inverse<'_>,
    finish: &dyn Fn(&KernelBuilder, &[Value], Value) -> Value,
) -> Result<Tensor, Unsupported> {
    let wide = computing(x.dtype);
    let bounds = emitter.bounds(&sets.inner)?;
    let count = emitter.value(&product(&sets.inner))?.cast(wide);
    let result = emitter.local(x.element, &x.extents, None)?;
    let outer_bounds = emitter.bounds(&sets.outer)?;
    nest(&mut emitter.builder, &outer_bounds, &mut Vec::new(), &mut |builder, outer| {
        let outer = outer.to_vec();
        let each = |builder: &mut KernelBuilder,
                    body: &mut dyn FnMut(&mut KernelBuilder, &[Value], Value)| {
            nest(builder, &bounds, &mut Vec::new(), &mut |builder, inner| {
                let indices = (sets.place)(&outer, inner);
                let value = x.at(builder, &indices).cast(wide);
                body(builder, &indices, value);
            });
        };
        let sum = builder.accumulator("sum", number(wide, 0.0), here!());
        each(builder, &mut |builder, _, value| builder.update(sum, UpdateOp::Add, value, here!()));
        let mean = builder.bind("mean", divide(&builder.read(sum), &count), here!());
        let squares = builder.accumulator("squares", number(wide, 0.0), here!());
        each(builder, &mut |builder, _, value| {
            let distance = subtract(&value, &mean);
            builder.update(squares, UpdateOp::Add, multiply(&distance, &distance), here!());
        });
        let variance = divide(&builder.read(squares), &count);
        let inverse = builder.bind("inverse", inverse(&variance), here!());
        each(builder, &mut |builder, indices, value| {
            let normal = multiply(&subtract(&value, &mean), &inverse);
            let value = finish(builder, indices, normal).cast(x.dtype);
            result.store(builder, indices, UpdateOp::Set, value, here!());
        });
    });
    Ok(result)
}

/// Groups of channels of each picture, with a scale and a shift for each channel, or each group; without a number of groups, each
/// channel alone.
pub(crate) fn channels(emitter: &mut Emitter, operands: &Operands<'_>, grouped: bool) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    let (scale, shift) = (operands.tensor(emitter, 1)?, operands.tensor(emitter, 2)?);
    if x.rank() < 2 || !x.dtype.is_float() {
        unsupported!("expected floats with batch and channels");
    }
    let Some(count) = x.extents[1].as_constant() else { unsupported!("the channels depend on the call") };
    let groups = if grouped { operands.attributes().int_or_default("num_groups") } else { count };
    if groups < 1 || count % groups != 0 {
        unsupported!("{count} channels cannot be divided into {groups} groups");
    }
    let size = count / groups;
    let spread = |parameter: &Tensor| match &parameter.extents[..] {
        // Before version 21, there was one number for each group.
        [own] if own.is(groups) => Ok(true),
        [own] if own.is(count) => Ok(false),
        _ => unsupported!("a parameter does not fit {count} channels"),
    };
    let by_group = [spread(&scale)?, spread(&shift)?];
    let inner: Vec<SymInt> = [&[SymInt::from(size)], &x.extents[2..]].concat();
    let place = |outer: &[Value], inner: &[Value]| {
        let first = outer[1].binary(tilewright_core::expr::BinaryOp::Mul, Value::int(size));
        let channel = if size == 1 { outer[1].clone() } else { add(&first, &inner[0]) };
        [&[outer[0].clone(), channel], &inner[1..]].concat()
    };
    let sets = Sets { outer: vec![x.extents[0].clone(), groups.into()], inner, place: &place };
    let (wide, epsilon) = (computing(x.dtype), operands.float("epsilon"));
    let inverse = |variance: &Value| {
        divide(&number(wide, 1.0), &add(variance, &number(wide, epsilon)).unary(UnaryOp::Sqrt))
    };
    let parameter = |builder: &KernelBuilder, which: usize, indices: &[Value]| {
        let channel = &indices[1];
        let group = if size == 1 || !by_group[which] {
            channel.clone()
        } else {
            channel.binary(tilewright_core::expr::BinaryOp::Div, Value::int(size))
        };
        [&scale, &shift][which].at(builder, &[group]).cast(wide)
    };
    let finish = |builder: &KernelBuilder, indices: &[Value], normal: Value| {
        add(&multiply(&normal, &parameter(builder, 0, indices)), &parameter(builder, 1, indices))
    };
    Ok(vec![normalise(emitter, &x, &sets, &inverse, &finish)?])
}

/// Elements relative to mean and deviation over some dimensions.
pub(crate) fn mean_and_variance(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    if !x.dtype.is_float() {
        unsupported!("elements of type {} are no floats", x.element);
    }
    let mut reduced = vec![false; x.rank()];
    for &number in operands.ints("axes").unwrap_or(&[0, 2, 3]) {
        reduced[axis(number, x.rank())?] = true;
    }
    let (outer, inner) = split(&x.extents, &reduced);
    let place = |outer: &[Value], inner: &[Value]| join(&reduced, outer, inner);
    let wide = computing(x.dtype);
    let inverse = |variance: &Value| {
        let deviation = add(&variance.unary(UnaryOp::Sqrt), &number(wide, crate::operator::EPSILON));
        divide(&number(wide, 1.0), &deviation)
    };
    let finish = |_: &KernelBuilder, _: &[Value], normal: Value| normal;
    Ok(vec![normalise(emitter, &x, &Sets { outer, inner, place: &place }, &inverse, &finish)?])
}

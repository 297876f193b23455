//! Reductions over any dimensions, and softmax.
//!
//! The largest and the smallest of elements are NaN where one of them is; their places are those of the largest and smallest number.

use tilewright_core::build::{UpdateOp, Value};
use tilewright_core::dtype::DType;
use tilewright_core::expr::{BinaryOp, UnaryOp};

use crate::legalise::emitter::{Bound, Emitter, Tensor, here, nest};
use crate::legalise::operands::Operands;
use crate::legalise::scalar::{computing, divide, multiply, number, subtract};
use crate::legalise::{Unsupported, unsupported};
use crate::operator::axis;
use crate::symbolic::SymInt;

type Emitted = Result<Vec<Tensor>, Unsupported>;

/// How elements become one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Reduction {
    Sum,
    SumOfSquares,
    SumOfMagnitudes,
    Mean,
    Product,
    /// The largest element; NaN where one is.
    Largest,
    /// The smallest element; NaN where one is.
    Smallest,
    /// The largest element that is not NaN.
    LargestNumber,
    /// The smallest element that is not NaN.
    SmallestNumber,
    /// The square root of the sum of squares.
    Length,
    LogOfSum,
}

impl Reduction {
    fn operator(self, dtype: DType) -> UpdateOp {
        match self {
            Reduction::Product => UpdateOp::Mul,
            Reduction::Largest if dtype.is_float() => UpdateOp::Maximum,
            Reduction::Smallest if dtype.is_float() => UpdateOp::Minimum,
            Reduction::Largest | Reduction::LargestNumber => UpdateOp::Max,
            Reduction::Smallest | Reduction::SmallestNumber => UpdateOp::Min,
            _ => UpdateOp::Add,
        }
    }

    /// The value for no elements.
    fn identity(self, dtype: DType) -> Value {
        let (least, greatest) =
            dtype.int_range().map_or((0, 0), |(least, greatest)| (least as i64, greatest as i64));
        match self {
            Reduction::Product => number(dtype, 1.0),
            Reduction::Largest | Reduction::LargestNumber => match dtype.is_float() {
                true => number(dtype, f64::NEG_INFINITY),
                false => Value::typed_int(dtype, least),
            },
            Reduction::Smallest | Reduction::SmallestNumber => match dtype.is_float() {
                true => number(dtype, f64::INFINITY),
                false => Value::typed_int(dtype, greatest),
            },
            _ => number(dtype, 0.0),
        }
    }

    fn term(self, x: &Value) -> Value {
        match self {
            Reduction::SumOfSquares | Reduction::Length => multiply(x, x),
            Reduction::SumOfMagnitudes => x.unary(UnaryOp::Abs),
            _ => x.clone(),
        }
    }

    fn finish(self, total: &Value, count: &Value) -> Value {
        match self {
            Reduction::Mean => divide(total, count),
            Reduction::Length => total.unary(UnaryOp::Sqrt),
            Reduction::LogOfSum => total.unary(UnaryOp::Ln),
            _ => total.clone(),
        }
    }

    /// Whether there is a result that no integer is.
    fn needs_floats(self) -> bool {
        matches!(self, Reduction::Mean | Reduction::Length | Reduction::LogOfSum)
    }
}

/// Reduces dimensions that an input, or its absence, names.
pub(crate) fn reduce(emitter: &mut Emitter, operands: &Operands<'_>, reduction: Reduction) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    let axes = operands.optional_integers(1)?.unwrap_or_default();
    let all = axes.is_empty() && !operands.flag("noop_with_empty_axes");
    let mut reduced = vec![all; x.rank()];
    for number in axes {
        reduced[axis(number, x.rank())?] = true;
    }
    Ok(vec![over(emitter, &x, &reduced, operands.flag("keepdims"), reduction)?])
}

/// Reduces all spatial dimensions of channels.
pub(crate) fn global(emitter: &mut Emitter, operands: &Operands<'_>, reduction: Reduction) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    if x.rank() < 2 || !x.dtype.is_float() {
        unsupported!("expected floats with batch and channels");
    }
    let reduced: Vec<bool> = (0..x.rank()).map(|dimension| dimension >= 2).collect();
    Ok(vec![over(emitter, &x, &reduced, true, reduction)?])
}

/// Reduces some dimensions of a tensor, which stay with extent 1 or go.
pub(super) fn over(
    emitter: &mut Emitter,
    x: &Tensor,
    reduced: &[bool],
    keep: bool,
    reduction: Reduction,
) -> Result<Tensor, Unsupported> {
    if x.dtype == DType::Bool || (reduction.needs_floats() && !x.dtype.is_float()) {
        unsupported!("elements of type {} are not reduced by a kernel", x.element);
    }
    let (outer, inner) = split(&x.extents, reduced);
    let kept: Vec<SymInt> = x.extents.iter().zip(reduced).map(|(extent, &gone)| kept(extent, gone)).collect();
    let shape = if keep { kept } else { outer.clone() };
    let (wide, inner_bounds) = (computing(x.dtype), emitter.bounds(&inner)?);
    let count = product(&inner);
    let count = emitter.value(&count)?.cast(wide);
    let result = emitter.local(x.element, &shape, None)?;
    emitter.nest(&outer, &mut |builder, outer| {
        let total = builder.accumulator("total", reduction.identity(wide), here!());
        nest(builder, &inner_bounds, &mut Vec::new(), &mut |builder, inner| {
            let value = x.at(builder, &join(reduced, outer, inner)).cast(wide);
            builder.update(total, reduction.operator(wide), reduction.term(&value), here!());
        });
        let indices =
            if keep { join(reduced, outer, &vec![Value::int(0); inner.len()]) } else { outer.to_vec() };
        let value = reduction.finish(&builder.read(total), &count).cast(x.dtype);
        result.store(builder, &indices, UpdateOp::Set, value, here!());
    })?;
    Ok(result)
}

fn kept(extent: &SymInt, reduced: bool) -> SymInt {
    if reduced { SymInt::from(1) } else { extent.clone() }
}

/// The product of extents.
pub(super) fn product(extents: &[SymInt]) -> SymInt {
    extents.iter().fold(SymInt::from(1), |product, extent| &product * extent)
}

/// The extents that stay, and those that are reduced.
pub(super) fn split(extents: &[SymInt], reduced: &[bool]) -> (Vec<SymInt>, Vec<SymInt>) {
    let part = |which: bool| {
        let chosen = extents.iter().zip(reduced).filter(move |(_, gone)| **gone == which);
        chosen.map(|(extent, _)| extent.clone()).collect()
    };
    (part(false), part(true))
}

/// Indices of all dimensions from those of the dimensions that stay and those that are reduced.
pub(super) fn join(reduced: &[bool], outer: &[Value], inner: &[Value]) -> Vec<Value> {
    let (mut outer, mut inner) = (outer.iter(), inner.iter());
    let next = |&gone: &bool| if gone { inner.next() } else { outer.next() };
    reduced
        .iter()
        .map(next)
        .map(|index| index.expect("there is an index for each dimension").clone())
        .collect()
}

/// Softmax along a dimension, or its logarithm.
pub(crate) fn softmax(emitter: &mut Emitter, operands: &Operands<'_>, logarithm: bool) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    if !x.dtype.is_float() {
        unsupported!("elements of type {} are no floats", x.element);
    }
    let along = operands.axis("axis", x.rank())?;
    let reduced: Vec<bool> = (0..x.rank()).map(|dimension| dimension == along).collect();
    let (outer, inner) = split(&x.extents, &reduced);
    let (wide, lane) = (computing(x.dtype), emitter.bounds(&inner)?);
    let result = emitter.local(x.element, &x.extents, None)?;
    emitter.nest(&outer, &mut |builder, outer| {
        let lane = Lane { x: &x, reduced: &reduced, outer, bounds: &lane, wide };
        let largest = builder.accumulator("largest", number(wide, f64::NEG_INFINITY), here!());
        lane.each(builder, &mut |builder, _, value| {
            builder.update(largest, UpdateOp::Max, value, here!());
        });
        let sum = builder.accumulator("sum", number(wide, 0.0), here!());
        // Powers that are kept in the result are exact only in the type that is computed with.
        if logarithm || x.dtype != wide {
            lane.each(builder, &mut |builder, _, value| {
                let distance = subtract(&value, &builder.read(largest));
                builder.update(sum, UpdateOp::Add, distance.unary(UnaryOp::Exp), here!());
            });
            lane.each(builder, &mut |builder, indices, value| {
                let distance = subtract(&value, &builder.read(largest));
                let value = if logarithm {
                    subtract(&distance, &builder.read(sum).unary(UnaryOp::Ln))
                } else {
                    divide(&distance.unary(UnaryOp::Exp), &builder.read(sum))
                };
                result.store(builder, indices, UpdateOp::Set, value.cast(x.dtype), here!());
            });
        } else {
            lane.each(builder, &mut |builder, indices, value| {
                let distance = subtract(&value, &builder.read(largest));
                let power = builder.bind("power", distance.unary(UnaryOp::Exp), here!());
                result.store(builder, indices, UpdateOp::Set, power.cast(x.dtype), here!());
                builder.update(sum, UpdateOp::Add, power, here!());
            });
            lane.each(builder, &mut |builder, indices, _| {
                let power = result.at(builder, indices).cast(wide);
                let value = divide(&power, &builder.read(sum)).cast(x.dtype);
                result.store(builder, indices, UpdateOp::Set, value, here!());
            });
        }
    })?;
    Ok(vec![result])
}

/// The elements of a tensor at one place of the dimensions that stay.
pub(super) struct Lane<'a> {
    pub(super) x: &'a Tensor,
    pub(super) reduced: &'a [bool],
    pub(super) outer: &'a [Value],
    pub(super) bounds: &'a [Bound],
    /// The type that is computed with.
    pub(super) wide: DType,
}

impl Lane<'_> {
    /// Loops over the elements, with the indices of each.
    pub(super) fn each(
        &self,
        builder: &mut tilewright_core::build::KernelBuilder,
        body: &mut dyn FnMut(&mut tilewright_core::build::KernelBuilder, &[Value], Value),
    ) {
        nest(builder, self.bounds, &mut Vec::new(), &mut |builder, inner| {
            let indices = join(self.reduced, self.outer, inner);
            let value = self.x.at(builder, &indices).cast(self.wide);
            body(builder, &indices, value);
        });
    }
}

/// The place of the first of the largest or smallest elements along a dimension.
pub(crate) fn arg_extreme(emitter: &mut Emitter, operands: &Operands<'_>, largest: bool) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    if x.dtype == DType::Bool {
        unsupported!("truth values have no order");
    }
    let along = operands.axis("axis", x.rank())?;
    let reduced: Vec<bool> = (0..x.rank()).map(|dimension| dimension == along).collect();
    let last = operands.flag("select_last_index");
    let (outer, inner) = split(&x.extents, &reduced);
    if inner[0].as_constant().is_none_or(|length| length < 1) {
        unsupported!("a dimension of {} elements may have no largest one", inner[0]);
    }
    let kind = if largest { Reduction::LargestNumber } else { Reduction::SmallestNumber };
    let best = over(emitter, &x, &reduced, true, kind)?;
    let shape: Vec<SymInt> =
        x.extents.iter().zip(&reduced).map(|(extent, &gone)| kept(extent, gone)).collect();
    let keep = operands.flag("keepdims");
    let (bounds, length) = (emitter.bounds(&inner)?, emitter.value(&inner[0])?);
    let shape = if keep { shape } else { outer.clone() };
    let result = emitter.local(crate::tensor::ElementType::I64, &shape, None)?;
    emitter.nest(&outer, &mut |builder, outer| {
        let zero = [Value::int(0)];
        let found = best.at(builder, &join(&reduced, outer, &zero));
        let initial = if last { Value::typed_int(DType::I64, 0) } else { length.clone() };
        let place = builder.accumulator("place", initial, here!());
        nest(builder, &bounds, &mut Vec::new(), &mut |builder, inner| {
            let value = x.at(builder, &join(&reduced, outer, inner));
            let here = inner[0].cast(DType::I64);
            let is_best = value.binary(BinaryOp::Eq, found.clone());
            let other = if last { Value::typed_int(DType::I64, 0) } else { length.clone() };
            let candidate = is_best.select(here, other);
            let op = if last { UpdateOp::Max } else { UpdateOp::Min };
            builder.update(place, op, candidate, here!());
        });
        // No element equals the best one where all are NaN.
        let end = subtract(&length, &Value::typed_int(DType::I64, 1));
        let value = builder.read(place).binary(BinaryOp::Min, end);
        let indices = if keep { join(&reduced, outer, &zero) } else { outer.to_vec() };
        result.store(builder, &indices, UpdateOp::Set, value, here!());
    })?;
    Ok(vec![result])
}

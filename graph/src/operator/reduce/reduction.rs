//! Reductions over any dimensions.

use crate::deduce;
use crate::ir::AttributeKind;
use crate::legalise::reduction::{self, Reduction};
use crate::operator::attribute::IntOr;
use crate::operator::evaluate::{axis, one, refuse};
use crate::operator::lanes::map_lanes;
use crate::operator::{Arguments, Fault, Operator, Value};
use crate::tensor::{Element, HostTensor, Number, Places, Wide, count, row_major_strides, with_number};

const AXES: &[(&str, AttributeKind)] = &[("keepdims", IntOr(1)), ("noop_with_empty_axes", IntOr(0))];
const AXIS: &[(&str, AttributeKind)] =
    &[("axis", IntOr(0)), ("keepdims", IntOr(1)), ("select_last_index", IntOr(0))];

/// A reduction of numbers: its rows take the tensor and the dimensions.
macro_rules! reduction {
    ($name:literal, $onnx:literal, $form:ident, $T:ident, $values:ident => $result:expr) => {
        reduction!($name, $onnx, $T, $values => $result)
            .legalise(|e, o| reduction::reduce(e, o, Reduction::$form))
    };
    ($name:literal, $onnx:literal, $T:ident, $values:ident => $result:expr) => {
        Operator::new($name, $onnx, |arguments| {
            let x = arguments.tensor(0)?;
            let axes = Axes::of(arguments)?;
            with_number!(x.element(), $T => axes.reduce::<$T, $T>(x, |$values| $result),
                else refuse!("expected numbers, found {}", x.element()))
        })
        .deduce(deduce::reduce)
        .inputs(1, 2)
        .attributes(AXES)
    };
}

/// The largest or the smallest element; of truth values, whether any or all are true.
macro_rules! extreme {
    ($arguments:expr, $largest:literal) => {{
        let x = $arguments.tensor(0)?;
        let axes = Axes::of($arguments)?;
        with_number!(x.element(), T => axes.reduce::<T, T>(x, |values| if $largest {
            values.iter().fold(T::lowest(), |largest, &x| largest.larger(x))
        } else {
            values.iter().fold(T::highest(), |smallest, &x| smallest.smaller(x))
        }), else axes.reduce::<bool, bool>(x, |values| values.iter().fold(!$largest, |found, &x| {
            if $largest { found || x } else { found && x }
        })))
    }};
}
/// Reductions that read each element once.
pub(super) const REDUCTIONS: &[Operator] = &[
    reduction!("reduce_sum", "ReduceSum", Sum, T, values => T::narrow(sum(values, |x| x))),
    reduction!("reduce_sum_square", "ReduceSumSquare", SumOfSquares, T, values => T::narrow(sum(values, |x| x.times(x)))),
    reduction!("reduce_mean", "ReduceMean", Mean, T, values => {
        T::from_f64(sum(values, |x| x).approximate() / values.len() as f64)
    }),
    reduction!("reduce_prod", "ReduceProd", Product, T, values => {
        T::narrow(values.iter().fold(<T as Number>::Wide::unit(), |product, x| product.times(x.widen())))
    }),
    reduction!("reduce_l1", "ReduceL1", SumOfMagnitudes, T, values => {
        T::from_f64(values.iter().map(|x| x.to_f64().abs()).sum())
    }),
    reduction!("reduce_l2", "ReduceL2", Length, T, values => {
        T::from_f64(values.iter().map(|x| x.to_f64().powi(2)).sum::<f64>().sqrt())
    }),
    reduction!("reduce_log_sum", "ReduceLogSum", LogOfSum, T, values => {
        T::from_f64(values.iter().map(|x| x.to_f64()).sum::<f64>().ln())
    }),
    reduction!("reduce_log_sum_exp", "ReduceLogSumExp", T, values => T::from_f64(log_sum_exp(values))),
    Operator::new("reduce_max", "ReduceMax", |a| extreme!(a, true))
        .legalise(|e, o| reduction::reduce(e, o, Reduction::Largest))
        .deduce(deduce::reduce)
        .inputs(1, 2)
        .attributes(AXES),
    Operator::new("reduce_min", "ReduceMin", |a| extreme!(a, false))
        .legalise(|e, o| reduction::reduce(e, o, Reduction::Smallest))
        .deduce(deduce::reduce)
        .inputs(1, 2)
        .attributes(AXES),
];

/// The places of the largest and the smallest element.
pub(super) const PLACES: &[Operator] = &[
    Operator::new("arg_max", "ArgMax", |a| arg_extreme(a, true))
        .legalise(|e, o| reduction::arg_extreme(e, o, true))
        .deduce(deduce::arg_reduce)
        .attributes(AXIS),
    Operator::new("arg_min", "ArgMin", |a| arg_extreme(a, false))
        .legalise(|e, o| reduction::arg_extreme(e, o, false))
        .deduce(deduce::arg_reduce)
        .attributes(AXIS),
];

fn sum<T: Number>(values: &[T], term: impl Fn(T::Wide) -> T::Wide) -> T::Wide {
    values.iter().fold(<T as Number>::Wide::default(), |sum, x| sum.plus(term(x.widen())))
}

/// `log(Σ exp(x))`, without overflow.
fn log_sum_exp<T: Number>(values: &[T]) -> f64 {
    let largest = values.iter().map(|x| x.to_f64()).fold(f64::NEG_INFINITY, f64::max);
    if largest.is_infinite() {
        return largest;
    }
    values.iter().map(|x| (x.to_f64() - largest).exp()).sum::<f64>().ln() + largest
}

/// Which dimensions a reduction goes over.
struct Axes {
    /// For each dimension whether it is reduced.
    reduced: Vec<bool>,
    /// Whether reduced dimensions stay with extent 1.
    keep: bool,
}

impl Axes {
    fn of(arguments: &Arguments<'_>) -> Result<Self, Fault> {
        let rank = arguments.tensor(0)?.rank();
        let axes = arguments.optional_integers(1)?.unwrap_or_default();
        let all = axes.is_empty() && !arguments.flag("noop_with_empty_axes");
        let mut reduced = vec![all; rank];
        for number in axes {
            reduced[axis(number, rank)?] = true;
        }
        Ok(Axes { reduced, keep: arguments.flag("keepdims") })
    }

    /// Makes one element of all those that differ in reduced dimensions only.
    fn reduce<T: Element, R: Element>(
        &self,
        x: &HostTensor,
        function: impl Fn(&[T]) -> R,
    ) -> Result<Vec<Value>, Fault> {
        self.reduce_by(x, &function)
    }

    /// As [`Axes::reduce`], compiled once for all functions.
    fn reduce_by<T: Element, R: Element>(
        &self,
        x: &HostTensor,
        function: &dyn Fn(&[T]) -> R,
    ) -> Result<Vec<Value>, Fault> {
        let kept = |extent: usize, reduced: bool| if reduced { 1 } else { extent };
        let with_ones: Vec<usize> =
            x.shape().iter().zip(&self.reduced).map(|(&extent, &reduced)| kept(extent, reduced)).collect();
        let mut strides = row_major_strides(&with_ones);
        strides
            .iter_mut()
            .zip(&self.reduced)
            .filter(|(_, reduced)| **reduced)
            .for_each(|(stride, _)| *stride = 0);
        let mut groups: Vec<Vec<T>> = vec![Vec::new(); count(&with_ones)?];
        for (value, place) in x.expect::<T>()?.iter().zip(Places::new(x.shape(), strides)) {
            groups[place].push(value.clone());
        }
        let elements: Vec<R> = groups.iter().map(|group| function(group)).collect();
        let dropped = x.shape().iter().zip(&self.reduced).filter(|(_, reduced)| !**reduced);
        let shape = if self.keep { with_ones } else { dropped.map(|(&extent, _)| extent).collect() };
        one(HostTensor::new(&shape, elements)?)
    }
}

/// The place of the first (or last) of the largest or smallest elements along a dimension.
fn arg_extreme(arguments: &Arguments<'_>, largest: bool) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let dimension = axis(arguments.int_or_default("axis"), x.rank())?;
    let last = arguments.flag("select_last_index");
    let places = with_number!(x.element(), T => map_lanes::<T, i64>(x, dimension, 1, |lane| {
        if lane.is_empty() {
            refuse!("there is no largest or smallest of no elements");
        }
        let better = |new: T, old: T| if largest { new > old } else { new < old };
        let best = (1..lane.len()).fold(0, |best, place| {
            let replaces = better(lane[place], lane[best]) || (last && lane[place] == lane[best]);
            if replaces { place } else { best }
        });
        Ok(vec![best as i64])
    }), else refuse!("expected numbers, found {}", x.element()))?;
    if arguments.flag("keepdims") {
        return one(places);
    }
    let mut shape = places.shape().to_vec();
    shape.remove(dimension);
    one(places.reshape(&shape)?)
}

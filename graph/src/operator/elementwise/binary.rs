//! Arithmetic on several tensors that broadcast.

use tilewright_core::expr::BinaryOp;

use crate::deduce;
use crate::legalise::{integer, pointwise, scalar};
use crate::operator::attribute::{IntOr, TextOr};
use crate::operator::evaluate::{one, refuse};
use crate::operator::{Arguments, Fault, Operator, Value};
use crate::tensor::{
    Element, ElementType, HostTensor, Number, Places, Wide, broadcast_shapes, with_element, with_number,
};

const ANY: usize = usize::MAX;

/// A function of two numbers of one type, with broadcasting.
macro_rules! arithmetic {
    ($arguments:expr, $T:ident, $x:ident, $y:ident => $result:expr) => {{
        let (x, y) = ($arguments.tensor(0)?, $arguments.tensor(1)?);
        with_number!(x.element(), $T => one(broadcast::<$T, $T, $T>(x, y, |&$x, &$y| $result)?),
            else refuse!("expected numbers, found {}", x.element()))
    }};
}
/// A function of two numbers applied to any number of tensors, from the first to the last.
macro_rules! fold {
    ($arguments:expr, $T:ident, $x:ident, $y:ident => $result:expr) => {{
        let inputs = $arguments.tensors()?;
        let (first, rest) = inputs.split_first().ok_or_else(|| Fault("there are no inputs".to_owned()))?;
        with_number!(first.element(), $T => {
            first.expect::<$T>()?;
            let mut result = (*first).clone();
            for other in rest {
                result = broadcast::<$T, $T, $T>(&result, other, |&$x, &$y| Ok($result))?;
            }
            one(result)
        }, else refuse!("expected numbers, found {}", first.element()))
    }};
}
pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("add", "Add", |a| arithmetic!(a, T, x, y => Ok(x.add(y))))
        .legalise(|e, o| pointwise::binary(e, o, BinaryOp::Add))
        .deduce(deduce::broadcast)
        .inputs(2, 2),
    Operator::new("sub", "Sub", |a| arithmetic!(a, T, x, y => Ok(x.subtract(y))))
        .legalise(|e, o| pointwise::binary(e, o, BinaryOp::Sub))
        .deduce(deduce::broadcast)
        .inputs(2, 2),
    Operator::new("mul", "Mul", |a| arithmetic!(a, T, x, y => Ok(x.multiply(y))))
        .legalise(|e, o| pointwise::binary(e, o, BinaryOp::Mul))
        .deduce(deduce::broadcast)
        .inputs(2, 2),
    Operator::new("div", "Div", |a| arithmetic!(a, T, x, y => x.divide(y).ok_or_else(by_zero)))
        .legalise(pointwise::divide)
        .deduce(deduce::broadcast)
        .inputs(2, 2),
    Operator::new("mod", "Mod", modulo)
        .legalise(integer::modulo)
        .deduce(deduce::broadcast)
        .inputs(2, 2)
        .attributes(&[("fmod", IntOr(0))]),
    Operator::new("pow", "Pow", power).legalise(pointwise::power).deduce(deduce::broadcast).inputs(2, 2),
    Operator::new("min", "Min", |a| fold!(a, T, x, y => x.smaller(y)))
        .legalise(|e, o| pointwise::fold(e, o, scalar::smaller))
        .deduce(deduce::broadcast)
        .inputs(1, ANY),
    Operator::new("max", "Max", |a| fold!(a, T, x, y => x.larger(y)))
        .legalise(|e, o| pointwise::fold(e, o, scalar::larger))
        .deduce(deduce::broadcast)
        .inputs(1, ANY),
    Operator::new("sum", "Sum", |a| fold!(a, T, x, y => x.add(y)))
        .legalise(pointwise::sum)
        .deduce(deduce::broadcast)
        .inputs(1, ANY),
    Operator::new("mean", "Mean", mean).legalise(pointwise::mean).deduce(deduce::broadcast).inputs(1, ANY),
    Operator::new("clip", "Clip", clip).legalise(pointwise::clip).deduce(deduce::same).inputs(1, 3),
    Operator::new("bitwise_and", "BitwiseAnd", |a| bits(a, |x, y| x & y))
        .legalise(|e, o| pointwise::bits(e, o, BinaryOp::And))
        .deduce(deduce::broadcast)
        .inputs(2, 2),
    Operator::new("bitwise_or", "BitwiseOr", |a| bits(a, |x, y| x | y))
        .legalise(|e, o| pointwise::bits(e, o, BinaryOp::Or))
        .deduce(deduce::broadcast)
        .inputs(2, 2),
    Operator::new("bitwise_xor", "BitwiseXor", |a| bits(a, |x, y| x ^ y))
        .legalise(|e, o| pointwise::bits(e, o, BinaryOp::Xor))
        .deduce(deduce::broadcast)
        .inputs(2, 2),
    Operator::new("bit_shift", "BitShift", bit_shift)
        .legalise(integer::shift)
        .deduce(deduce::broadcast)
        .inputs(2, 2)
        .attributes(&[("direction", TextOr(""))]),
    Operator::new("where", "Where", choose).legalise(pointwise::choose).deduce(deduce::choose).inputs(3, 3),
];

/// Applies a function to all pairs of elements that broadcasting brings together.
pub(crate) fn broadcast<A: Element, B: Element, R: Element>(
    left: &HostTensor,
    right: &HostTensor,
    function: impl Fn(&A, &B) -> Result<R, Fault>,
) -> Result<HostTensor, Fault> {
    broadcast_by(left, right, &function)
}

/// As [`broadcast`]. There is one for each combination of types, and not for each function: those take much longer to compile.
fn broadcast_by<A: Element, B: Element, R: Element>(
    left: &HostTensor,
    right: &HostTensor,
    function: &dyn Fn(&A, &B) -> Result<R, Fault>,
) -> Result<HostTensor, Fault> {
    let shape = broadcast_shapes(left.shape(), right.shape())?;
    let (left_elements, right_elements) = (left.expect::<A>()?, right.expect::<B>()?);
    let pairs = Places::broadcast(&shape, left.shape()).zip(Places::broadcast(&shape, right.shape()));
    let elements = pairs.map(|(left, right)| function(&left_elements[left], &right_elements[right]));
    Ok(HostTensor::new(&shape, elements.collect::<Result<Vec<R>, Fault>>()?)?)
}

fn by_zero() -> Fault {
    Fault("an integer is divided by zero".to_owned())
}

/// With `fmod`, the remainder has the sign of the dividend, else that of the divisor.
fn modulo(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let keeps_dividend = arguments.flag("fmod");
    arithmetic!(arguments, T, x, y => {
        let remainder = x.remainder(y).ok_or_else(by_zero)?;
        let zero = T::default();
        let other_sign = remainder != zero && (remainder < zero) != (y < zero);
        Ok(if !keeps_dividend && other_sign { remainder.add(y) } else { remainder })
    })
}

fn power(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let (base, exponent) = (arguments.tensor(0)?, arguments.tensor(1)?);
    let wide = match exponent.element() {
        element if element.is_float() => ElementType::F64,
        ElementType::U64 if base.element().is_float() => ElementType::F64,
        element if element.is_integer() => ElementType::I64,
        element => refuse!("the exponent must be a number, found {element}"),
    };
    let exponent = exponent.cast(wide).map_err(|error| Fault(error.to_string()))?;
    with_number!(base.element(), T => one(match wide {
        ElementType::I64 => broadcast::<T, i64, T>(base, &exponent, |&x, &y| Ok(match T::IS_FLOAT {
            false if y >= 0 => integer_power(x, y),
            _ => T::from_f64(x.to_f64().powf(y as f64)),
        })),
        _ => broadcast::<T, f64, T>(base, &exponent, |&x, &y| Ok(T::from_f64(x.to_f64().powf(y)))),
    }?), else refuse!("the base must be a number, found {}", base.element()))
}

fn integer_power<T: Number>(base: T, exponent: i64) -> T {
    let (mut power, mut square, mut left) = (T::one(), base, exponent);
    while left > 0 {
        if left % 2 == 1 {
            power = power.multiply(square);
        }
        square = square.multiply(square);
        left /= 2;
    }
    power
}

fn mean(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let inputs = arguments.tensors()?;
    let Some(first) = inputs.first() else { refuse!("there are no inputs") };
    with_number!(first.element(), T => {
        let shape = inputs.iter().try_fold(first.shape().to_vec(), |shape, input| broadcast_shapes(&shape, input.shape()))?;
        let mut sums = vec![<T as Number>::Wide::default(); crate::tensor::count(&shape)?];
        for input in &inputs {
            let elements = input.expect::<T>()?;
            for (sum, place) in sums.iter_mut().zip(Places::broadcast(&shape, input.shape())) {
                *sum = sum.plus(elements[place].widen());
            }
        }
        let count = inputs.len() as f64;
        let means = sums.into_iter().map(|sum| T::from_f64(sum.approximate() / count));
        one(HostTensor::new(&shape, means.collect())?)
    }, else refuse!("expected numbers, found {}", first.element()))
}

fn clip(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    with_number!(x.element(), T => {
        let bound = |place: usize, none: T| match arguments.optional(place)? {
            None => Ok(none),
            Some(bound) => match bound.expect::<T>()? {
                [bound] => Ok(*bound),
                bounds => refuse!("a bound must have one element, it has {}", bounds.len()),
            },
        };
        let (low, high) = (bound(1, T::lowest())?, bound(2, T::highest())?);
        let elements = x.expect::<T>()?.iter().map(|x| x.larger(low).smaller(high)).collect();
        one(HostTensor::new(x.shape(), elements)?)
    }, else refuse!("expected numbers, found {}", x.element()))
}

fn bits(arguments: &Arguments<'_>, function: fn(i64, i64) -> i64) -> Result<Vec<Value>, Fault> {
    arithmetic!(arguments, T, x, y => {
        if T::IS_FLOAT {
            refuse!("expected integers, found {}", T::TYPE);
        }
        Ok(T::from_integer(function(x.to_integer(), y.to_integer())))
    })
}

fn bit_shift(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let left = match arguments.text("direction") {
        "LEFT" => true,
        "RIGHT" => false,
        other => refuse!("attribute direction must be LEFT or RIGHT, not `{other}`"),
    };
    arithmetic!(arguments, T, x, y => {
        if !T::TYPE.is_unsigned() {
            refuse!("expected unsigned integers, found {}", T::TYPE);
        }
        let (value, by) = (x.to_integer() as u64, y.to_integer() as u64);
        let by = u32::try_from(by).unwrap_or(u32::MAX);
        let shifted = if left { value.checked_shl(by) } else { value.checked_shr(by) };
        Ok(T::from_integer(shifted.unwrap_or(0) as i64))
    })
}

fn choose(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let (condition, x, y) = (arguments.tensor(0)?, arguments.tensor(1)?, arguments.tensor(2)?);
    let shape = broadcast_shapes(condition.shape(), &broadcast_shapes(x.shape(), y.shape())?)?;
    let truths = condition.expect::<bool>()?;
    with_element!(x.element(), T => {
        let (x_elements, y_elements) = (x.expect::<T>()?, y.expect::<T>()?);
        let places = Places::broadcast(&shape, x.shape()).zip(Places::broadcast(&shape, y.shape()));
        let elements = Places::broadcast(&shape, condition.shape()).zip(places).map(|(truth, (x, y))| {
            if truths[truth] { x_elements[x].clone() } else { y_elements[y].clone() }
        });
        one(HostTensor::new(&shape, elements.collect())?)
    })
}

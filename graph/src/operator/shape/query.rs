//! Shapes as tensors, and tensors made from shapes.

use crate::deduce;
use crate::legalise::place;
use crate::operator::attribute::{Element, Int, IntOr, Tensor};
use crate::operator::evaluate::{axis, one, refuse};
use crate::operator::shape::arrange::extents;
use crate::operator::{Arguments, Fault, Operator, Value};
use crate::tensor::{ElementType, HostTensor, Number, with_element, with_elements, with_number};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("shape", "Shape", shape)
        .deduce(deduce::shape)
        .attributes(&[("start", IntOr(0)), ("end", Int)]),
    Operator::new("size", "Size", |a| one(HostTensor::scalar(a.tensor(0)?.len() as i64)))
        .deduce(deduce::size),
    Operator::new("constant_of_shape", "ConstantOfShape", constant_of_shape)
        .deduce(deduce::constant_of_shape)
        .attributes(&[("value", Tensor)]),
    Operator::new("range", "Range", range).deduce(deduce::range).inputs(3, 3),
    Operator::new("eye_like", "EyeLike", eye_like)
        .deduce(deduce::eye_like)
        .attributes(&[("dtype", Element), ("k", IntOr(0))]),
    Operator::new("one_hot", "OneHot", one_hot)
        .legalise(place::one_hot)
        .deduce(deduce::one_hot)
        .inputs(3, 3)
        .attributes(&[("axis", IntOr(-1))]),
];

fn shape(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let rank = x.rank() as i64;
    let clamp =
        |number: i64| (if number < 0 { number.saturating_add(rank) } else { number }).clamp(0, rank) as usize;
    let start = clamp(arguments.int_or_default("start"));
    let end = clamp(arguments.int("end").unwrap_or(rank)).max(start);
    one(HostTensor::vector(x.shape()[start..end].iter().map(|&extent| extent as i64).collect()))
}

fn constant_of_shape(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let shape = extents(&arguments.integers(0)?)?;
    let zero = HostTensor::scalar(0f32);
    let value = arguments.tensor_attribute("value").unwrap_or(&zero);
    with_elements!(value.elements(), values => match &values[..] {
        [value] => one(HostTensor::full(&shape, value.clone())?),
        other => refuse!("attribute value must have one element, it has {}", other.len()),
    })
}

/// How many elements a range may have: beyond it, a hostile limit would fill the memory.
const LONGEST_RANGE: f64 = (1u64 << 31) as f64;

fn range(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let start = arguments.tensor(0)?;
    with_number!(start.element(), T => {
        let number = |place: usize| match arguments.slice::<T>(place)? {
            &[value] => Ok(value),
            other => refuse!("input {place} must have one element, it has {}", other.len()),
        };
        let (start, limit, step) = (number(0)?, number(1)?, number(2)?);
        if step.to_f64() == 0.0 {
            refuse!("the step of a range must not be zero");
        }
        let count = ((limit.to_f64() - start.to_f64()) / step.to_f64()).ceil().max(0.0);
        if !(0.0..=LONGEST_RANGE).contains(&count) {
            refuse!("a range of {count} elements is too long");
        }
        let element = |place: usize| start.add(T::from_integer(place as i64).multiply(step));
        one(HostTensor::vector((0..count as usize).map(element).collect()))
    }, else refuse!("expected numbers, found {}", start.element()))
}

fn eye_like(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let &[rows, columns] = x.shape() else { refuse!("expected a matrix, found shape {:?}", x.shape()) };
    let (element, k) = (arguments.element("dtype").unwrap_or(x.element()), arguments.int_or_default("k"));
    let places = (0..rows)
        .flat_map(|row| (0..columns).map(move |column| (row as i64).checked_add(k) == Some(column as i64)));
    one(HostTensor::new(&[rows, columns], places.collect::<Vec<bool>>())?.cast(element)?)
}

fn one_hot(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let (indices, values) = (arguments.tensor(0)?, arguments.tensor(2)?);
    let depth = match arguments.optional_integer(1)?.map(usize::try_from) {
        Some(Ok(depth)) => depth,
        _ => refuse!("the depth must be one number that is not negative"),
    };
    if values.len() != 2 {
        refuse!("input 2 must have two elements, the values for off and on; it has {}", values.len());
    }
    let dimension = axis(arguments.int_or_default("axis"), indices.rank() + 1)?;
    let numbers = indices.cast(ElementType::I64)?;
    let numbers = numbers.expect::<i64>()?;
    let (outer, inner) = indices.shape().split_at(dimension);
    let shape: Vec<usize> = outer.iter().chain(&[depth]).chain(inner).copied().collect();
    let inner: usize = inner.iter().product();
    with_element!(values.element(), T => {
        let [off, on] = values.expect::<T>()? else { unreachable!("the number of values is checked above") };
        let mut elements = vec![off.clone(); crate::tensor::count(&shape)?];
        for (place, &number) in numbers.iter().enumerate() {
            let number = if number < 0 { number + depth as i64 } else { number };
            if (0..depth as i64).contains(&number) {
                elements[(place / inner * depth + number as usize) * inner + place % inner] = on.clone();
            }
        }
        one(HostTensor::new(&shape, elements)?)
    })
}

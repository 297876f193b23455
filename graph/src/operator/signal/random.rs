//! Numbers that are drawn at random.
//!
//! With the attribute `seed`, a call draws the same numbers each time. Without it, each call of a process draws others.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::deduce;
use crate::ir::AttributeKind;
use crate::operator::attribute::{Element, Float, FloatOr, IntOr, Ints};
use crate::operator::evaluate::{numbers, one, refuse};
use crate::operator::{Arguments, Fault, Operator, Value};
use crate::tensor::{ElementType, HostTensor, count};

const NORMAL: &[(&str, AttributeKind)] =
    &[("dtype", Element), ("mean", FloatOr(0.0)), ("scale", FloatOr(1.0)), ("seed", Float), ("shape", Ints)];
const NORMAL_LIKE: &[(&str, AttributeKind)] =
    &[("dtype", Element), ("mean", FloatOr(0.0)), ("scale", FloatOr(1.0)), ("seed", Float)];
const UNIFORM: &[(&str, AttributeKind)] =
    &[("dtype", Element), ("high", FloatOr(1.0)), ("low", FloatOr(0.0)), ("seed", Float), ("shape", Ints)];
const UNIFORM_LIKE: &[(&str, AttributeKind)] =
    &[("dtype", Element), ("high", FloatOr(1.0)), ("low", FloatOr(0.0)), ("seed", Float)];

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("random_normal", "RandomNormal", |a| of_shape(a, normal))
        .deduce(deduce::of_shape_attribute)
        .inputs(0, 0)
        .attributes(NORMAL)
        .draws(),
    Operator::new("random_normal_like", "RandomNormalLike", |a| like(a, normal))
        .deduce(deduce::eye_like)
        .attributes(NORMAL_LIKE)
        .draws(),
    Operator::new("random_uniform", "RandomUniform", |a| of_shape(a, uniform))
        .deduce(deduce::of_shape_attribute)
        .inputs(0, 0)
        .attributes(UNIFORM)
        .draws(),
    Operator::new("random_uniform_like", "RandomUniformLike", |a| like(a, uniform))
        .deduce(deduce::eye_like)
        .attributes(UNIFORM_LIKE)
        .draws(),
    Operator::new("bernoulli", "Bernoulli", bernoulli)
        .deduce(deduce::eye_like)
        .attributes(&[("dtype", Element), ("seed", Float)])
        .draws(),
    Operator::new("multinomial", "Multinomial", multinomial)
        .deduce(deduce::multinomial)
        .attributes(&[("dtype", Element), ("sample_size", IntOr(1)), ("seed", Float)])
        .draws(),
];

/// A generator of random numbers (SplitMix64: Steele, Lea and Flood 2014).
struct Generator(u64);

impl Generator {
    fn of(arguments: &Arguments<'_>) -> Self {
        static CALLS: AtomicU32 = AtomicU32::new(0);
        match arguments.float("seed") {
            Some(seed) => Generator(seed.to_bits()),
            None => Generator(u64::from(CALLS.fetch_add(1, Ordering::Relaxed)) << 32),
        }
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to below 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A number with the mean and deviation of the attributes (Box and Muller 1958).
fn normal(arguments: &Arguments<'_>, generator: &mut Generator) -> f64 {
    let (radius, turn) = (1.0 - generator.unit(), generator.unit());
    let standard = (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * turn).cos();
    arguments.float_or_default("mean") + arguments.float_or_default("scale") * standard
}

/// A number between the bounds of the attributes.
fn uniform(arguments: &Arguments<'_>, generator: &mut Generator) -> f64 {
    let (low, high) = (arguments.float_or_default("low"), arguments.float_or_default("high"));
    low + (high - low) * generator.unit()
}

type Draw = fn(&Arguments<'_>, &mut Generator) -> f64;

fn of_shape(arguments: &Arguments<'_>, draw: Draw) -> Result<Vec<Value>, Fault> {
    let Some(shape) = arguments.ints("shape") else { refuse!("attribute shape is missing") };
    let extents = shape.iter().map(|&extent| usize::try_from(extent));
    let Ok(shape) = extents.collect::<Result<Vec<_>, _>>() else {
        refuse!("attribute shape must have extents, not {shape:?}")
    };
    drawn(arguments, &shape, ElementType::F32, draw)
}

fn like(arguments: &Arguments<'_>, draw: Draw) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    drawn(arguments, x.shape(), x.element(), draw)
}

fn drawn(
    arguments: &Arguments<'_>,
    shape: &[usize],
    element: ElementType,
    draw: Draw,
) -> Result<Vec<Value>, Fault> {
    let (mut generator, mut values) = (Generator::of(arguments), Vec::new());
    let length = count(shape)?;
    if values.try_reserve_exact(length).is_err() {
        refuse!("there is no memory for {length} numbers");
    }
    values.extend((0..length).map(|_| draw(arguments, &mut generator)));
    one(HostTensor::new(shape, values)?.cast(arguments.element("dtype").unwrap_or(element))?)
}

/// One or zero for each probability.
fn bernoulli(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let mut generator = Generator::of(arguments);
    let values: Vec<bool> = numbers(x)?.into_iter().map(|share| generator.unit() < share).collect();
    one(HostTensor::new(x.shape(), values)?.cast(arguments.element("dtype").unwrap_or(x.element()))?)
}

/// Classes for each row of logarithms of weights.
fn multinomial(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let &[rows, classes] = x.shape() else { refuse!("expected a matrix, found shape {:?}", x.shape()) };
    let samples = match usize::try_from(arguments.int_or_default("sample_size")) {
        Ok(samples @ 1..) if classes > 0 => samples,
        _ => refuse!("there must be a class and a sample"),
    };
    let (mut generator, mut drawn) = (Generator::of(arguments), Vec::new());
    if drawn.try_reserve_exact(count(&[rows, samples])?).is_err() {
        refuse!("there is no memory for {rows} rows of {samples} samples");
    }
    for row in numbers(x)?.chunks_exact(classes) {
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = row.iter().map(|logarithm| (logarithm - largest).exp()).collect();
        let total: f64 = weights.iter().sum();
        for _ in 0..samples {
            let mut left = generator.unit() * total;
            let chosen = weights.iter().position(|weight| {
                left -= weight;
                left < 0.0
            });
            drawn.push(chosen.unwrap_or(classes - 1) as i64);
        }
    }
    one(HostTensor::new(&[rows, samples], drawn)?
        .cast(arguments.element("dtype").unwrap_or(ElementType::I32))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Attribute, Attributes};
    use crate::operator::find;

    fn draw(name: &str, attributes: Attributes, input: Option<HostTensor>) -> HostTensor {
        let inputs: Vec<Option<Value>> = input.into_iter().map(|input| Some(input.into())).collect();
        let operator = find(name).unwrap();
        let arguments = Arguments { operator, attributes: &attributes, inputs: &inputs, outputs: 1 };
        (operator.evaluate)(&arguments).unwrap()[0].as_tensor().unwrap().clone()
    }

    fn moments(tensor: &HostTensor) -> (f64, f64) {
        let values = numbers(tensor).unwrap();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        (mean, values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / values.len() as f64)
    }

    #[test]
    fn numbers_have_the_moments_of_their_attributes() {
        let shape = || Attributes::none().with("shape", Attribute::Ints(vec![100, 200]));
        let normal = shape().with("mean", Attribute::Float(3.0)).with("scale", Attribute::Float(2.0));
        let (mean, variance) = moments(&draw("random_normal", normal, None));
        assert!((mean - 3.0).abs() < 0.1 && (variance - 4.0).abs() < 0.2, "{mean} {variance}");
        let uniform = shape().with("low", Attribute::Float(-1.0)).with("high", Attribute::Float(5.0));
        let drawn = draw("random_uniform", uniform, None);
        let (mean, variance) = moments(&drawn);
        assert!((mean - 2.0).abs() < 0.1 && (variance - 3.0).abs() < 0.1, "{mean} {variance}");
        assert!(numbers(&drawn).unwrap().iter().all(|x| (-1.0..5.0).contains(x)));
        let shares = HostTensor::full(&[20_000], 0.3f32).unwrap();
        let (mean, _) = moments(&draw("bernoulli", Attributes::none(), Some(shares)));
        assert!((mean - 0.3).abs() < 0.02, "{mean}");
        let weights = HostTensor::new(&[1, 3], vec![0.2f32.ln(), 0.5f32.ln(), 0.3f32.ln()]).unwrap();
        let samples = Attributes::none().with("sample_size", Attribute::Int(20_000));
        let drawn = numbers(&draw("multinomial", samples, Some(weights))).unwrap();
        let share = drawn.iter().filter(|&&class| class == 1.0).count() as f64 / drawn.len() as f64;
        assert!((share - 0.5).abs() < 0.02, "{share}");
    }

    #[test]
    fn a_seed_repeats_the_numbers_and_no_seed_does_not() {
        let like = |attributes: Attributes| {
            draw("random_normal_like", attributes, Some(HostTensor::full(&[8], 0f32).unwrap()))
        };
        let seeded = || like(Attributes::none().with("seed", Attribute::Float(7.0)));
        assert_eq!(seeded(), seeded());
        assert_ne!(like(Attributes::none()), like(Attributes::none()));
    }
}

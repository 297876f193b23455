//! Discrete Fourier transforms, by their definition.

use std::f64::consts::TAU;

use crate::deduce;
use crate::legalise::signal;
use crate::operator::attribute::IntOr;
use crate::operator::evaluate::{axis, one, refuse};
use crate::operator::lanes::Lanes;
use crate::operator::{Arguments, Fault, Operator, Value};
use crate::tensor::{HostTensor, Number, count, with_float};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("dft", "DFT", dft)
        .legalise(signal::dft)
        .deduce(deduce::dft)
        .inputs(1, 3)
        .attributes(&[("inverse", IntOr(0)), ("onesided", IntOr(0))]),
    Operator::new("stft", "STFT", stft)
        .legalise(signal::stft)
        .deduce(deduce::stft)
        .inputs(2, 4)
        .attributes(&[("onesided", IntOr(1))]),
];

/// How long a transform may be: beyond it, a hostile number would fill the memory.
const LONGEST: usize = 1 << 28;

/// A complex number: real and imaginary part.
type Complex = (f64, f64);

/// The transform of a signal, which is cut or filled with zeros to `length`; the first `kept` coefficients.
fn transform(signal: &[Complex], length: usize, kept: usize, inverse: bool) -> Vec<Complex> {
    let direction = if inverse { 1.0 } else { -1.0 };
    // `frequency · time` is reduced first, so that angles stay small and exact.
    let turn = |step: usize| (direction * TAU * step as f64 / length as f64).sin_cos();
    let turns: Vec<(f64, f64)> = (0..length).map(turn).collect();
    let scale = if inverse { 1.0 / length as f64 } else { 1.0 };
    let coefficient = |frequency: usize| {
        let sum = signal.iter().take(length).enumerate().fold((0.0, 0.0), |(re, im), (time, &(a, b))| {
            let (sin, cos) = turns[frequency * time % length];
            (re + a * cos - b * sin, im + a * sin + b * cos)
        });
        (sum.0 * scale, sum.1 * scale)
    };
    (0..kept).map(coefficient).collect()
}

/// Coefficients of real signals repeat, conjugated, from the middle on.
fn half(length: usize) -> usize {
    length / 2 + 1
}

fn dft(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let Some((&parts @ (1 | 2), shape)) = x.shape().split_last() else {
        refuse!("the last dimension must hold one or two parts of a number, found shape {:?}", x.shape())
    };
    let number = arguments.optional_integer(2)?.unwrap_or(-2);
    let dimension = axis(number, x.rank())?;
    if dimension >= shape.len() {
        refuse!("axis {number} is the dimension of real and imaginary parts");
    }
    let (inverse, onesided) = (arguments.flag("inverse"), arguments.flag("onesided"));
    // The inverse of one half of the coefficients is a real signal, of even length unless another is given.
    let real = inverse && onesided;
    let length = match arguments.optional_integer(1)? {
        None if real => 2 * shape[dimension].saturating_sub(1),
        None => shape[dimension],
        Some(length) => usize::try_from(length).unwrap_or(0),
    };
    if length > LONGEST {
        refuse!("a transform of length {length} is too long");
    }
    let kept = if onesided && !inverse { half(length) } else { length };
    let mut result_shape = shape.to_vec();
    result_shape[dimension] = kept;
    let lanes = Lanes::along(shape, dimension);
    let results = Lanes { length: kept, ..lanes };
    let result_parts = if real { 1 } else { 2 };
    let full: Vec<usize> = result_shape.iter().copied().chain([result_parts]).collect();
    with_float!(x.element(), T => {
        let elements = x.expect::<T>()?;
        let complex = |place: usize| {
            let part = |part: usize| if part < parts { elements[place * parts + part].widen() } else { 0.0 };
            (part(0), part(1))
        };
        let mut values = vec![T::default(); count(&full)?];
        for (start, result_start) in lanes.starts().zip(results.starts()) {
            let mut signal: Vec<Complex> = lanes.places(start).map(complex).collect();
            if real {
                mirror(&mut signal, length);
            }
            let coefficients = transform(&signal, length, kept, inverse);
            for (place, (re, im)) in results.places(result_start).zip(coefficients) {
                values[place * result_parts] = T::narrow(re);
                if result_parts == 2 {
                    values[place * 2 + 1] = T::narrow(im);
                }
            }
        }
        one(HostTensor::new(&full, values)?)
    }, else refuse!("expected floating-point elements, found {}", x.element()))
}

/// Adds the coefficients that are the conjugates of the first half.
fn mirror(signal: &mut Vec<Complex>, length: usize) {
    signal.resize(half(length), (0.0, 0.0));
    for place in half(length)..length {
        let (re, im) = signal[length - place];
        signal.push((re, -im));
    }
}

fn stft(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.tensor(0)?;
    let (batch, samples, parts) = match *x.shape() {
        [batch, samples] => (batch, samples, 1),
        [batch, samples, parts @ (1 | 2)] => (batch, samples, parts),
        ref shape => refuse!("expected batch, samples and parts, found shape {shape:?}"),
    };
    let Some(hop) =
        arguments.optional_integer(1)?.and_then(|hop| usize::try_from(hop).ok()).filter(|&hop| hop > 0)
    else {
        refuse!("the distance of frames must be one positive number")
    };
    let window = arguments.optional_numbers(2)?;
    let given = arguments.optional_integer(3)?.and_then(|length| usize::try_from(length).ok());
    let Some(length) =
        given.or(window.as_ref().map(Vec::len)).filter(|&length| length > 0 && length <= samples)
    else {
        refuse!("the length of frames must be from 1 to {samples}")
    };
    let window = window.unwrap_or_else(|| vec![1.0; length]);
    if window.len() > length {
        refuse!("a window of length {} does not fit frames of length {length}", window.len());
    }
    let frames = (samples - length) / hop + 1;
    let kept = if arguments.flag("onesided") { half(length) } else { length };
    let shape = [batch, frames, kept, 2];
    with_float!(x.element(), T => {
        let elements = x.expect::<T>()?;
        let mut values = Vec::with_capacity(count(&shape)?);
        for number in 0..batch * frames {
            let first = number / frames * samples + number % frames * hop;
            let sample = |(place, weight): (usize, &f64)| {
                let part = |part: usize| {
                    if part < parts { weight * elements[(first + place) * parts + part].widen() } else { 0.0 }
                };
                (part(0), part(1))
            };
            let signal: Vec<Complex> = window.iter().enumerate().map(sample).collect();
            for (re, im) in transform(&signal, length, kept, false) {
                values.extend([T::narrow(re), T::narrow(im)]);
            }
        }
        one(HostTensor::new(&shape, values)?)
    }, else refuse!("expected floating-point elements, found {}", x.element()))
}

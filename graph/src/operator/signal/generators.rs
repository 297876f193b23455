//! Windows, and the weights of mel filters.

use std::f64::consts::TAU;

use crate::deduce;
use crate::ir::AttributeKind;
use crate::operator::attribute::{Element, IntOr};
use crate::operator::evaluate::{one, refuse};
use crate::operator::{Arguments, Fault, Operator, Value};
use crate::tensor::{ElementType, HostTensor};

const WINDOW: &[(&str, AttributeKind)] = &[("output_datatype", Element), ("periodic", IntOr(1))];

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("hann_window", "HannWindow", |a| window(a, &[0.5, 0.5]))
        .deduce(deduce::window)
        .attributes(WINDOW),
    Operator::new("hamming_window", "HammingWindow", |a| window(a, &[25.0 / 46.0, 1.0 - 25.0 / 46.0]))
        .deduce(deduce::window)
        .attributes(WINDOW),
    Operator::new("blackman_window", "BlackmanWindow", |a| window(a, &[0.42, 0.5, 0.08]))
        .deduce(deduce::window)
        .attributes(WINDOW),
    Operator::new("mel_weight_matrix", "MelWeightMatrix", mel_weight_matrix)
        .inputs(5, 5)
        .attributes(&[("output_datatype", Element)]),
];

/// How long a window may be: beyond it, a hostile number would fill the memory.
const LONGEST: i64 = 1 << 28;

/// A sum of cosines with alternating signs.
fn window(arguments: &Arguments<'_>, terms: &[f64]) -> Result<Vec<Value>, Fault> {
    let Some(size @ 0..=LONGEST) = arguments.optional_integer(0)? else {
        refuse!("the size must be one sensible number")
    };
    let period = if arguments.flag("periodic") { size as f64 } else { (size - 1) as f64 };
    let value = |place: i64| {
        let angle = if period > 0.0 { TAU * place as f64 / period } else { 0.0 };
        let term = |(order, &weight): (usize, &f64)| {
            let sign = if order % 2 == 0 { 1.0 } else { -1.0 };
            sign * weight * (order as f64 * angle).cos()
        };
        terms.iter().enumerate().map(term).sum()
    };
    let values: Vec<f64> = (0..size).map(value).collect();
    one(HostTensor::vector(values).cast(arguments.element("output_datatype").unwrap_or(ElementType::F32))?)
}

/// Weights that add up the spectrum in triangles which are equally wide on the mel scale. ONNX divides the range by two
/// more than the number of bands, so that the last triangle ends before the upper limit.
fn mel_weight_matrix(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let number = |place: usize| match arguments.optional_numbers(place)?.as_deref() {
        Some(&[number]) => Ok(number),
        _ => refuse!("input {place} must be one number"),
    };
    let (bands, length, rate, low, high) = (number(0)?, number(1)?, number(2)?, number(3)?, number(4)?);
    if !(1.0..1e6).contains(&bands) || !(1.0..1e8).contains(&length) || rate <= 0.0 {
        refuse!("{bands} bands of a transform of length {length} at rate {rate} are not possible");
    }
    let (bands, spectrum) = (bands as usize, length as usize / 2 + 1);
    let to_mel = |hertz: f64| 2595.0 * (1.0 + hertz / 700.0).log10();
    let from_mel = |mel: f64| 700.0 * (10f64.powf(mel / 2595.0) - 1.0);
    let step = (to_mel(high) - to_mel(low)) / (bands + 2) as f64;
    let edge = |place: usize| {
        let hertz = from_mel(to_mel(low) + step * place as f64);
        ((length + 1.0) * hertz / rate).floor() as i64
    };
    let mut weights = vec![0.0; crate::tensor::count(&[spectrum, bands])?];
    for band in 0..bands {
        let (lower, centre, upper) = (edge(band), edge(band + 1), edge(band + 2));
        let mut set = |place: i64, weight: f64| {
            if let Some(row) = usize::try_from(place).ok().filter(|&row| row < spectrum) {
                weights[row * bands + band] = weight;
            }
        };
        if lower == centre {
            set(centre, 1.0);
        } else {
            (lower..=centre).for_each(|place| set(place, (place - lower) as f64 / (centre - lower) as f64));
        }
        (centre..upper).for_each(|place| set(place, (upper - place) as f64 / (upper - centre) as f64));
    }
    one(HostTensor::new(&[spectrum, bands], weights)?
        .cast(arguments.element("output_datatype").unwrap_or(ElementType::F32))?)
}

//! From numbers to integers and back.

use crate::deduce;
use crate::legalise::quantise as kernels;
use crate::operator::attribute::{Element, IntOr, TextOr};
use crate::operator::evaluate::{axis, one, refuse};
use crate::operator::quantise::lookup::look_up;
use crate::operator::{Arguments, Fault, OWN_DOMAIN, Operator, Value};
use crate::tensor::small::Small;
use crate::tensor::{ElementType, HostTensor, Number, with_number, with_small};

/// Conversions of single elements.
pub(super) const POINTWISE: &[Operator] = &[
    Operator::new("quantize_linear", "QuantizeLinear", quantize)
        .deduce(deduce::quantize)
        .legalise(kernels::quantize)
        .inputs(2, 3)
        .attributes(&[
            ("axis", IntOr(1)),
            ("block_size", IntOr(0)),
            ("output_dtype", Element),
            ("precision", IntOr(0)),
            ("saturate", IntOr(1)),
        ]),
    Operator::new("dequantize_linear", "DequantizeLinear", dequantize)
        .deduce(deduce::dequantize)
        .legalise(kernels::dequantize)
        .inputs(2, 3)
        .attributes(&[("axis", IntOr(1)), ("block_size", IntOr(0)), ("output_dtype", Element)]),
    Operator::new("requantize", "Requantize", requantize)
        .domain(OWN_DOMAIN)
        .deduce(deduce::quantize)
        .legalise(kernels::requantize)
        .inputs(3, 3)
        .attributes(&[("axis", IntOr(1)), ("rounding", TextOr("float"))]),
    Operator::new("look_up", "LookUp", look_up)
        .domain(OWN_DOMAIN)
        .deduce(deduce::look_up)
        .legalise(kernels::look_up)
        .inputs(2, 2),
];

/// Conversions that look at all elements first.
pub(super) const OPERATORS: &[Operator] =
    &[Operator::new("dynamic_quantize_linear", "DynamicQuantizeLinear", dynamic_quantize)
        .deduce(deduce::dynamic_quantize)
        .legalise(kernels::dynamic_quantize)
        .outputs(3, 3)];

/// The number in `numbers` that belongs to each element: one for all, one for each place of a dimension, or one for each
/// block of places.
pub(super) fn spread(
    numbers: &HostTensor,
    shape: &[usize],
    dimension: i64,
    block: i64,
) -> Result<Vec<f64>, Fault> {
    let cast = numbers.cast(ElementType::F64)?;
    let values = cast.expect::<f64>()?;
    let count = crate::tensor::count(shape)?;
    if let &[value] = values {
        return Ok(vec![value; count]);
    }
    let dimension = axis(dimension, shape.len())?;
    let inner: usize = shape[dimension + 1..].iter().product();
    if numbers.rank() <= 1 {
        if values.len() != shape[dimension] {
            refuse!("{} scales do not fit a dimension of extent {}", values.len(), shape[dimension]);
        }
        return Ok((0..count).map(|place| values[place / inner % shape[dimension]]).collect());
    }
    let blocks = numbers.shape().get(dimension).copied().unwrap_or(0);
    let given = usize::try_from(block).ok().filter(|&block| block > 0);
    let block = given.unwrap_or_else(|| shape[dimension].div_ceil(blocks.max(1)));
    let fits = numbers.rank() == shape.len()
        && (0..shape.len())
            .all(|d| numbers.shape()[d] == if d == dimension { shape[d].div_ceil(block) } else { shape[d] });
    if !fits {
        refuse!("scales of shape {:?} do not fit blocks of {block} in shape {shape:?}", numbers.shape());
    }
    let place = |place: usize| {
        let (outer, within, rest) =
            (place / inner / shape[dimension], place / inner % shape[dimension], place % inner);
        values[(outer * blocks + within / block) * inner + rest]
    };
    Ok((0..count).map(place).collect())
}

fn quantize(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let (x, scale) = (arguments.tensor(0)?, arguments.tensor(1)?);
    let (dimension, block) = (arguments.int_or_default("axis"), arguments.int_or_default("block_size"));
    let zero = arguments.optional(2)?;
    let to = zero.map(HostTensor::element).or(arguments.element("output_dtype")).unwrap_or(ElementType::U8);
    let scales = spread(scale, x.shape(), dimension, block)?;
    let zeros =
        zero.map_or_else(|| Ok(vec![0.0; x.len()]), |zero| spread(zero, x.shape(), dimension, block))?;
    let numbers = arguments.optional_numbers(0)?.unwrap_or_default();
    let saturate = arguments.int_or_default("saturate") != 0;
    let single = x.element() != ElementType::F64;
    if to.small_bits().is_some() {
        let quotients = numbers
            .into_iter()
            .zip(scales)
            .map(|(x, scale)| if single { f64::from(x as f32 / scale as f32) } else { x / scale });
        return with_small!(to, T => {
            // Floats are rounded once, after the zero point is added; integers before.
            let quantise = |(quotient, zero): (f64, f64)| {
                let nearest = if to.is_float() { quotient } else { quotient.round_ties_even() };
                <T as Small>::from_f64(nearest + zero, saturate)
            };
            one(HostTensor::new(x.shape(), quotients.zip(zeros).map(quantise).collect())?)
        }, else unreachable!("the type has few bits"));
    }
    if !to.is_integer() {
        refuse!("{to} is no integer type");
    }
    with_number!(to, T => {
        let quantise = |((x, scale), zero): ((f64, f64), f64)| {
            // The quotient is formed in the precision of kernels, since it decides to which side a half is rounded.
            let quotient = if single { f64::from(x as f32 / scale as f32) } else { x / scale };
            T::from_f64(quotient.round_ties_even() + zero)
        };
        one(HostTensor::new(x.shape(), numbers.into_iter().zip(scales).zip(zeros).map(quantise).collect())?)
    }, else refuse!("{to} is no integer type"))
}

fn dequantize(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let (x, scale) = (arguments.tensor(0)?, arguments.tensor(1)?);
    let (dimension, block) = (arguments.int_or_default("axis"), arguments.int_or_default("block_size"));
    let scales = spread(scale, x.shape(), dimension, block)?;
    let zeros = match arguments.optional(2)? {
        None => vec![0.0; x.len()],
        Some(zero) => spread(zero, x.shape(), dimension, block)?,
    };
    let numbers = arguments.optional_numbers(0)?.unwrap_or_default();
    let single = scale.element() != ElementType::F64;
    let value = |((x, scale), zero): ((f64, f64), f64)| {
        // A difference is rounded before it is scaled where it has more bits than an `f32`.
        if single { f64::from((x - zero) as f32 * scale as f32) } else { (x - zero) * scale }
    };
    let values: Vec<f64> = numbers.into_iter().zip(scales).zip(zeros).map(value).collect();
    one(HostTensor::new(x.shape(), values)?
        .cast(arguments.element("output_dtype").unwrap_or(scale.element()))?)
}

/// Sums of products as integers of fewer bits. Inputs: sums, their scale relative to that of the result, zero point of the
/// result. Without `rounding`, the product with the scale is formed in `f32`, as ONNX Runtime does (`MlasRequantizeOutput`); with one of
/// [`Rounding`]'s names it is exact, and rounded once.
fn requantize(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let (x, scale, zero) = (arguments.tensor(0)?, arguments.tensor(1)?, arguments.tensor(2)?);
    let dimension = arguments.int_or_default("axis");
    let scales = spread(scale, x.shape(), dimension, 0)?;
    if let Some(rounding) = Rounding::of(arguments.text("rounding"))? {
        return requantised_exactly(&arguments.integers(0)?, &scales, rounding, zero, x.shape(), dimension);
    }
    requantised(&arguments.integers(0)?, &scales, zero, x.shape(), dimension)
}

/// How the exact product of an integer and a scale becomes an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// To nearest, halves to even.
    Even,
    /// To nearest, halves away from zero.
    Away,
    /// To nearest, halves upward.
    Upward,
}

impl Rounding {
    /// The rounding of a name; `None` for `float`, which is none of these.
    pub(crate) fn of(name: &str) -> Result<Option<Self>, Fault> {
        match name {
            "float" => Ok(None),
            "even" => Ok(Some(Rounding::Even)),
            "away" => Ok(Some(Rounding::Away)),
            "upward" => Ok(Some(Rounding::Upward)),
            _ => refuse!("rounding `{name}` is none of float, even, away, upward"),
        }
    }

    /// A numerator over a power of two as an integer.
    fn quotient(self, numerator: i128, bits: u32) -> i128 {
        let (floor, rest) = (numerator >> bits, numerator & ((1i128 << bits) - 1));
        let twice = (2 * rest).cmp(&(1i128 << bits));
        let is_up = match self {
            Rounding::Even => twice.is_gt() || (twice.is_eq() && floor & 1 == 1),
            Rounding::Away => twice.is_gt() || (twice.is_eq() && numerator >= 0),
            Rounding::Upward => twice.is_ge(),
        };
        floor + i128::from(is_up)
    }
}

/// Sums scaled exactly: a scale of 32 bits is an integer of 24 bits times a power of two, so that no multiplier of 31 bits is more exact.
fn requantised_exactly(
    sums: &[i64],
    scales: &[f64],
    rounding: Rounding,
    zero: &HostTensor,
    shape: &[usize],
    dimension: i64,
) -> Result<Vec<Value>, Fault> {
    let zeros = spread(zero, shape, dimension, 0)?;
    let scaled = |sum: i64, scale: f64| {
        let bits = (scale as f32).to_bits();
        let exponent = (bits >> 23) as i32 & 255;
        let multiplier = i128::from(bits & 0x007f_ffff | if exponent > 0 { 1 << 23 } else { 0 });
        // The scale is the multiplier over two to this power.
        let power = 150 - exponent.max(1);
        let product = i128::from(sum) * multiplier;
        // A product of 56 bits is nothing from here on.
        if power > 60 {
            rounding.quotient(product, 60)
        } else if power > 0 {
            rounding.quotient(product, power as u32)
        } else {
            product << (-power).min(40)
        }
    };
    with_number!(zero.element(), T => {
        let element = |((&sum, &scale), zero): ((&i64, &f64), f64)| {
            let (low, high) = (T::lowest().to_f64(), T::highest().to_f64());
            T::from_f64((scaled(sum, scale) as f64 + zero).clamp(low, high))
        };
        one(HostTensor::new(shape, sums.iter().zip(scales).zip(zeros).map(element).collect())?)
    }, else refuse!("the zero point must be a number"))
}

/// Sums scaled in `f32`, rounded to even, moved by the zero point of the result, within its type's range.
pub(super) fn requantised(
    sums: &[i64],
    scales: &[f64],
    zero: &HostTensor,
    shape: &[usize],
    dimension: i64,
) -> Result<Vec<Value>, Fault> {
    let zeros = spread(zero, shape, dimension, 0)?;
    with_number!(zero.element(), T => {
        let element = |((&sum, &scale), zero): ((&i64, &f64), f64)| {
            T::from_f64(f64::from((sum as f32 * scale as f32).round_ties_even()) + zero)
        };
        one(HostTensor::new(shape, sums.iter().zip(scales).zip(zeros).map(element).collect())?)
    }, else refuse!("the zero point must be a number"))
}

/// To unsigned bytes, with scale and zero point taken from the range of the data, which always holds zero.
fn dynamic_quantize(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let x = arguments.slice::<f32>(0)?;
    let low = x.iter().fold(0f32, |low, &x| low.min(x));
    let high = x.iter().fold(0f32, |high, &x| high.max(x));
    // A tensor of zeros has no range; any scale represents it.
    let scale = if high == low { 1.0 } else { (high - low) / 255.0 };
    let zero = (0.0 - low / scale).clamp(0.0, 255.0).round_ties_even();
    let quantised =
        x.iter().map(|x| ((x / scale).round_ties_even() + zero).clamp(0.0, 255.0) as u8).collect();
    let bytes = HostTensor::new(arguments.tensor(0)?.shape(), quantised)?;
    Ok(vec![bytes.into(), HostTensor::scalar(scale).into(), HostTensor::scalar(zero as u8).into()])
}

//! Sums of products of integers.

use crate::deduce;
use crate::legalise::quantise as kernels;
use crate::operator::evaluate::one;
use crate::operator::linear::{CONVOLUTION_ATTRIBUTES, Convolution, matmul_wide};
use crate::operator::quantise::convert::{requantised, spread};
use crate::operator::{Arguments, Fault, Operator, ResultOrder, Value};
use crate::tensor::HostTensor;

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("matmul_integer", "MatMulInteger", matmul_integer)
        .deduce(deduce::matmul_integer)
        .legalise(kernels::matmul_integer)
        .result_order(ResultOrder::Rows)
        .inputs(2, 4),
    Operator::new("conv_integer", "ConvInteger", conv_integer)
        .deduce(deduce::conv_integer)
        .legalise(kernels::conv_integer)
        .result_order(ResultOrder::Channels { weights: 1, filters: 0 })
        .inputs(2, 4)
        .attributes(CONVOLUTION_ATTRIBUTES),
    Operator::new("qlinear_matmul", "QLinearMatMul", qlinear_matmul)
        .deduce(deduce::qlinear_matmul)
        .legalise(kernels::qlinear_matmul)
        .result_order(ResultOrder::Rows)
        .inputs(8, 8),
    Operator::new("qlinear_conv", "QLinearConv", qlinear_conv)
        .deduce(deduce::qlinear_conv)
        .legalise(kernels::qlinear_conv)
        .result_order(ResultOrder::Channels { weights: 3, filters: 0 })
        .inputs(8, 9)
        .attributes(CONVOLUTION_ATTRIBUTES),
];

/// Integers with their zero points taken away.
fn centred(
    arguments: &Arguments<'_>,
    place: usize,
    zero: Option<&HostTensor>,
    dimension: i64,
) -> Result<Vec<i64>, Fault> {
    let x = arguments.tensor(place)?;
    let numbers = arguments.integers(place)?;
    let Some(zero) = zero else { return Ok(numbers) };
    let zeros = spread(zero, x.shape(), dimension, 0)?;
    Ok(numbers.into_iter().zip(zeros).map(|(number, zero)| number - zero as i64).collect())
}

/// The dimension of rows, along which zero points of a left operand lie; a vector has its only one.
fn rows(tensor: &HostTensor) -> i64 {
    if tensor.rank() > 1 { -2 } else { -1 }
}

fn to_i32(shape: &[usize], sums: Vec<i64>) -> Result<Vec<Value>, Fault> {
    one(HostTensor::new(shape, sums.into_iter().map(|sum| sum as i32).collect())?)
}

fn matmul_integer(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let (a, b) = (arguments.tensor(0)?, arguments.tensor(1)?);
    let left = centred(arguments, 0, arguments.optional(2)?, rows(a))?;
    let right = centred(arguments, 1, arguments.optional(3)?, -1)?;
    let (sums, shape) = matmul_wide((&left[..], a.shape()), (&right[..], b.shape()))?;
    to_i32(&shape, sums)
}

fn conv_integer(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let convolution = Convolution::of(arguments, arguments.tensor(0)?.shape(), arguments.tensor(1)?.shape())?;
    // With zero points taken away, padding by the zero point is padding by zeros.
    let x = centred(arguments, 0, arguments.optional(2)?, 1)?;
    let weights = centred(arguments, 1, arguments.optional(3)?, 0)?;
    to_i32(&convolution.shape(), convolution.compute(&x, &weights)?)
}

/// The scale of sums of products relative to that of the result, as ONNX Runtime rounds it.
fn relative(scales: [Vec<f64>; 3]) -> Vec<f64> {
    let [left, right, result] = scales;
    let pairs = left.into_iter().zip(right).zip(result);
    pairs.map(|((a, b), result)| f64::from(a as f32 * b as f32 / result as f32)).collect()
}

/// Inputs: a, its scale and zero point, b, its scale and zero point, scale and zero point of the result.
fn qlinear_matmul(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let (a, b) = (arguments.tensor(0)?, arguments.tensor(3)?);
    let left = centred(arguments, 0, Some(arguments.tensor(2)?), rows(a))?;
    let right = centred(arguments, 3, Some(arguments.tensor(5)?), -1)?;
    let (sums, shape) = matmul_wide((&left[..], a.shape()), (&right[..], b.shape()))?;
    let scale_of_a = spread(arguments.tensor(1)?, &shape, rows(a), 0)?;
    let scale_of_b = spread(arguments.tensor(4)?, &shape, -1, 0)?;
    let scale_of_result = spread(arguments.tensor(6)?, &shape, -1, 0)?;
    let scales = relative([scale_of_a, scale_of_b, scale_of_result]);
    requantised(&sums, &scales, arguments.tensor(7)?, &shape, -1)
}

/// Inputs: x, its scale and zero point, weights, their scale and zero point, scale and zero point of the result, bias.
fn qlinear_conv(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let convolution = Convolution::of(arguments, arguments.tensor(0)?.shape(), arguments.tensor(3)?.shape())?;
    let x = centred(arguments, 0, Some(arguments.tensor(2)?), 1)?;
    let weights = centred(arguments, 3, Some(arguments.tensor(5)?), 0)?;
    let mut sums = convolution.compute(&x, &weights)?;
    let shape = convolution.shape();
    if let Some(bias) = arguments.optional_integers(8)? {
        crate::operator::linear::add_bias(&mut sums, &bias, &shape)?;
    }
    let scale_of_x = spread(arguments.tensor(1)?, &shape, 1, 0)?;
    let scale_of_weights = spread(arguments.tensor(4)?, &shape, 1, 0)?;
    let scale_of_result = spread(arguments.tensor(6)?, &shape, 1, 0)?;
    let scales = relative([scale_of_x, scale_of_weights, scale_of_result]);
    requantised(&sums, &scales, arguments.tensor(7)?, &shape, 1)
}

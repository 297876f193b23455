//! Products of dequantised tensors become products of integers.
//!
//! A model that was quantised ahead says so by pairs of calls: `quantize_linear` stores a tensor as integers, `dequantize_linear`
//! reads it as numbers again. A product between them is computed on the integers: `matmul(dequantize(a), dequantize(b))`
//! becomes `dequantize(matmul_integer(a, b))`, and a `quantize_linear` that follows makes one `requantize` of the two
//! conversions. A product stays in floats where its sums might not fit 32 bits, or where its scales lie along the dimension of the sums;
//! [`stays_float`] says which products do, and why. Operators that only move dequantised numbers [move the integers](movement), and functions of a single
//! tensor become [tables].

mod movement;
mod operand;
mod scales;
mod stop;
mod tables;

use std::sync::Arc;

pub(super) use scales::check_scales;

use rustc_hash::FxHashSet;

use crate::build::BuildError;
use crate::ir::{Attribute, Attributes, Body, Call, Function, Operation, ValueId};
use crate::operator;
use crate::pass::{CallRule, Rewriter};
use crate::symbolic::SymInt;
use crate::tensor::{ElementType, HostTensor};
use operand::{Bias, Quantised, conversion, extents, require_bytes};
use stop::{Stop, stays};

/// A product of dequantised tensors that is computed in floats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaysFloat {
    /// The node that it comes from.
    pub node: String,
    /// The operator.
    pub operator: &'static str,
    /// Why it has no form on integers.
    pub reason: String,
}

/// The products of dequantised tensors that an optimised function computes in floats, with the reasons that the function before shows.
///
/// # Errors
/// When the function does not fit together.
pub fn stays_float(before: &Function, optimised: &Function) -> Result<Vec<StaysFloat>, BuildError> {
    let mut rule = FoldQuantisation::default();
    Rewriter::apply(before, &mut rule)?;
    let mut calls = FxHashSet::default();
    collect(&optimised.body, &mut calls);
    rule.stays.retain(|product| calls.contains(&(product.node.clone(), product.operator)));
    Ok(rule.stays)
}

/// The nodes of calls, with their operators.
fn collect(body: &Body, calls: &mut FxHashSet<(String, &'static str)>) {
    for binding in &body.bindings {
        if let Operation::Call(call) = &binding.operation {
            let node = binding.origin.as_deref().unwrap_or(call.operator.name);
            calls.insert((node.to_owned(), call.operator.name));
        }
        binding.operation.bodies().into_iter().for_each(|inner| collect(inner, calls));
    }
}

/// Replaces products of dequantised tensors.
#[derive(Default)]
pub(super) struct FoldQuantisation {
    stays: Vec<StaysFloat>,
}

type Attempt = Result<Vec<ValueId>, Stop>;

impl CallRule for FoldQuantisation {
    fn rewrite_call(
        &mut self,
        graph: &mut Rewriter<'_>,
        call: &Call,
    ) -> Result<Option<Vec<ValueId>>, BuildError> {
        let attempt = match call.operator.name {
            "matmul" => matmul(graph, call),
            "gemm" => gemm(graph, call),
            "conv" => conv(graph, call),
            "conv_transpose" | "einsum" => no_form(),
            "quantize_linear" => {
                return match requantize(graph, call)? {
                    None => tables::look_up(graph, call),
                    found => Ok(found),
                };
            }
            _ => return movement::move_integers(graph, call),
        };
        match attempt {
            Ok(values) => Ok(Some(values)),
            Err(Stop::Build(error)) => Err(error),
            Err(Stop::Stays(reason)) => {
                if call.inputs.iter().any(|&input| conversion(graph, input).is_some()) {
                    let node = graph.builder.origin().unwrap_or_else(|| Arc::from(call.operator.name));
                    let operator = call.operator.name;
                    self.stays.push(StaysFloat { node: node.to_string(), operator, reason });
                }
                Ok(None)
            }
        }
    }
}

fn no_form() -> Attempt {
    stays!("the operator has no kernel on integers")
}

/// The scales of products.
fn product_scale(
    graph: &mut Rewriter<'_>,
    left: &Quantised,
    right: &Quantised,
) -> Result<ValueId, BuildError> {
    let (Some(of_left), Some(of_right)) = (&left.scales, &right.scales) else {
        let scales = vec![Some(left.scale), Some(right.scale)];
        return Ok(graph.add_call(call("mul", scales, Attributes::none())?, 1)?[0]);
    };
    let scales: Vec<f32> = of_right.iter().map(|scale| of_left[0] * scale).collect();
    let tensor = if scales.len() == 1 { HostTensor::scalar(scales[0]) } else { HostTensor::vector(scales) };
    Ok(graph.add_constant(tensor))
}

fn call(name: &str, inputs: Vec<Option<ValueId>>, attributes: Attributes) -> Result<Call, BuildError> {
    let operator = operator::find(name).ok_or_else(|| BuildError::UnknownOperator(name.to_owned()))?;
    Ok(Call { operator, inputs, attributes })
}

/// Sums as numbers.
fn dequantize(graph: &mut Rewriter<'_>, sums: ValueId, scale: ValueId, axis: i64) -> Attempt {
    let attributes = Attributes::none().with("axis", Attribute::Int(axis));
    let call = call("dequantize_linear", vec![Some(sums), Some(scale)], attributes)?;
    Ok(graph.add_call(call, 1)?)
}

fn integer_inputs(left: &Quantised, right: &Quantised) -> Vec<Option<ValueId>> {
    vec![Some(left.integers), Some(right.integers), left.zero, right.zero]
}

fn matmul(graph: &mut Rewriter<'_>, matmul: &Call) -> Attempt {
    let left = Quantised::of(graph, matmul.inputs[0], "the left factor")?;
    let right = Quantised::of(graph, matmul.inputs[1], "the right factor")?;
    let extents = extents(graph, right.integers)?;
    let rank = extents.len();
    let depth = rank.checked_sub(2).and_then(|place| extents[place].as_constant());
    require_bytes([&left, &right], (rank.saturating_sub(1), rank), depth, &[])?;
    product(graph, [&left, &right], Bias::None)
}

/// `alpha · a · b + beta · c` of matrices that may be transposed. `c` is numbers, or a vector of integers with the scales of the products, which is
/// how quantisers store a bias.
fn gemm(graph: &mut Rewriter<'_>, gemm: &Call) -> Attempt {
    let float = |name: &str| match gemm.attributes.get(name) {
        Some(Attribute::Float(value)) => *value,
        _ => 1.0,
    };
    let is_set = |name: &str| matches!(gemm.attributes.get(name), Some(Attribute::Int(value)) if *value != 0);
    let bias = gemm.inputs.get(2).copied().flatten();
    if float("alpha") != 1.0 || (bias.is_some() && float("beta") != 1.0) {
        stays!("the products or the bias have a factor");
    }
    let mut left = Quantised::of(graph, gemm.inputs[0], "the left factor")?;
    let mut right = Quantised::of(graph, gemm.inputs[1], "the right factor")?;
    let bias = Bias::of(graph, bias, [&left, &right])?;
    let transposed = usize::from(is_set("transB"));
    let extents = extents(graph, right.integers)?;
    let [rows, columns] = &extents[..] else { stays!("the right factor is no matrix") };
    let (depth, count) = if transposed == 1 { (columns, rows) } else { (rows, columns) };
    // A single number may belong to all columns; others are one for each.
    let fits = |bias: &[i32]| bias.len() <= 1 || count.as_constant() == Some(bias.len() as i64);
    if !fits(bias.integers()) {
        stays!("the bias has no number for each column");
    }
    require_bytes([&left, &right], (1 - transposed, 2), depth.as_constant(), bias.integers())?;
    for (operand, name) in [(&mut left, "transA"), (&mut right, "transB")] {
        if is_set(name) {
            let attributes = Attributes::none().with("perm", Attribute::Ints(vec![1, 0]));
            let transpose = call("transpose", vec![Some(operand.integers)], attributes)?;
            operand.integers = graph.add_call(transpose, 1)?[0];
        }
    }
    product(graph, [&left, &right], bias)
}

/// A product of two tensors as a product of their integers.
fn product(graph: &mut Rewriter<'_>, [left, right]: [&Quantised; 2], bias: Bias) -> Attempt {
    let scale = product_scale(graph, left, right)?;
    let integer = call("matmul_integer", integer_inputs(left, right), Attributes::none())?;
    let mut sums = graph.add_call(integer, 1)?[0];
    if let Bias::Integers(bias) = &bias {
        let bias = graph.add_constant(HostTensor::vector(bias.clone()));
        sums = add(graph, sums, bias)?;
    }
    let numbers = dequantize(graph, sums, scale, -1)?;
    match bias {
        Bias::Numbers(bias) => Ok(vec![add(graph, numbers[0], bias)?]),
        _ => Ok(numbers),
    }
}

fn conv(graph: &mut Rewriter<'_>, conv: &Call) -> Attempt {
    let x = Quantised::of(graph, conv.inputs[0], "the input")?;
    let weights = Quantised::of(graph, conv.inputs[1], "the weights")?;
    let extents = extents(graph, weights.integers)?;
    let rank = extents.len();
    if rank < 2 {
        stays!("the weights have no dimension for channels");
    }
    let depth = extents[1..]
        .iter()
        .map(SymInt::as_constant)
        .try_fold(1i64, |count, extent| count.checked_mul(extent?));
    let bias = Bias::of(graph, conv.inputs.get(2).copied().flatten(), [&x, &weights])?;
    require_bytes([&x, &weights], (0, rank), depth, bias.integers())?;
    // A number for each channel, with extents of 1 for rows and columns.
    let by_channel = |length: usize| -> Vec<usize> {
        std::iter::once(length).chain(std::iter::repeat_n(1, rank - 2)).collect()
    };
    let bias_tensor = match &bias {
        Bias::None => None,
        Bias::Integers(numbers) => HostTensor::new(&by_channel(numbers.len()), numbers.clone()).ok(),
        Bias::Numbers(bias) => match graph.constant(*bias) {
            Some(bias) => bias.reshape(&by_channel(bias.len())).ok(),
            None => stays!("the bias is computed"),
        },
    };
    let scale = product_scale(graph, &x, &weights)?;
    let integer = call("conv_integer", integer_inputs(&x, &weights), conv.attributes.clone())?;
    let mut sums = graph.add_call(integer, 1)?[0];
    let bias_tensor = bias_tensor.map(|tensor| graph.add_constant(tensor));
    if let (Bias::Integers(_), Some(bias)) = (&bias, bias_tensor) {
        sums = add(graph, sums, bias)?;
    }
    let numbers = dequantize(graph, sums, scale, 1)?;
    match (bias, bias_tensor) {
        (Bias::Numbers(_), Some(bias)) => Ok(vec![add(graph, numbers[0], bias)?]),
        _ => Ok(numbers),
    }
}

/// Adds a tensor to sums or numbers.
fn add(graph: &mut Rewriter<'_>, sums: ValueId, bias: ValueId) -> Result<ValueId, BuildError> {
    Ok(graph.add_call(call("add", vec![Some(sums), Some(bias)], Attributes::none())?, 1)?[0])
}

/// Numbers that are read from integers and stored as integers of another scale.
fn requantize(graph: &mut Rewriter<'_>, quantize: &Call) -> Result<Option<Vec<ValueId>>, BuildError> {
    let named = ["block_size", "precision", "output_dtype"]
        .iter()
        .any(|name| quantize.attributes.get(name).is_some());
    let Ok(source) = Quantised::of(graph, quantize.inputs[0], "the sum") else { return Ok(None) };
    if named {
        return Ok(None);
    }
    let (Some(scale), zero) = (quantize.inputs[1], quantize.inputs.get(2).copied().flatten()) else {
        return Ok(None);
    };
    if movement::is_stored_again(graph, &source, scale, zero) {
        return Ok(Some(vec![source.integers]));
    }
    let Some(zero) = zero else { return Ok(None) };
    let is_centred = source.zeros.as_ref().is_some_and(|zeros| zeros.iter().all(|&zero| zero == 0));
    let is_uniform = match graph.constant(scale) {
        Some(scale) => {
            let only = scale.as_slice::<f32>().filter(|scales| scales.len() == 1);
            only.is_some_and(|only| only[0].is_normal() && only[0] > 0.0)
        }
        None => {
            let ty = graph.builder.ty(scale);
            ty.element() == Some(ElementType::F32) && ty.extents().is_some_and(<[SymInt]>::is_empty)
        }
    };
    let bits = graph.builder.ty(zero).element().and_then(ElementType::dtype).map(|dtype| dtype.bits());
    if source.element != ElementType::I32 || !is_centred || !is_uniform || bits != Some(8) {
        return Ok(None);
    }
    let known = graph.constant(scale).and_then(|scale| scale.as_slice::<f32>()).map(|scale| scale[0]);
    let factors = match (&source.scales, known) {
        (Some(scales), Some(scale)) => {
            let factors: Vec<f32> = scales.iter().map(|own| own / scale).collect();
            let one = factors.len() == 1;
            graph.add_constant(if one { HostTensor::scalar(factors[0]) } else { HostTensor::vector(factors) })
        }
        _ => {
            let both = vec![Some(source.scale), Some(scale)];
            graph.add_call(call("div", both, Attributes::none())?, 1)?[0]
        }
    };
    let attributes = Attributes::none().with("axis", Attribute::Int(source.axis));
    graph
        .add_call(call("requantize", vec![Some(source.integers), Some(factors), Some(zero)], attributes)?, 1)
        .map(Some)
}

//! Products of dequantised tensors become products of integers.
//!
//! A model that was quantised ahead says so by pairs of calls: `quantize_linear` stores a tensor as integers, `dequantize_linear`
//! reads it as numbers again. A product between them is computed on the integers: `matmul(dequantize(a), dequantize(b))`
//! becomes `dequantize(matmul_integer(a, b))`, and a `quantize_linear` that follows makes one `requantize` of the two
//! conversions. A product stays in floats where its sums might not fit 32 bits, or where its scales are not constant.

use crate::build::BuildError;
use crate::ir::{Attribute, Attributes, Call, Operation, ValueId};
use crate::operator;
use crate::pass::{Rewriter, Rule};
use crate::tensor::{ElementType, HostTensor};

/// Replaces products of dequantised tensors.
pub(super) struct FoldQuantisation;

impl Rule for FoldQuantisation {
    fn rewrite(
        &mut self,
        graph: &mut Rewriter<'_>,
        operation: &Operation,
        outputs: usize,
    ) -> Result<Option<Vec<ValueId>>, BuildError> {
        let Operation::Call(call) = operation else { return Ok(None) };
        if outputs != 1 {
            return Ok(None);
        }
        match call.operator.name {
            "matmul" => matmul(graph, call),
            "conv" => conv(graph, call),
            "quantize_linear" => requantize(graph, call),
            _ => Ok(None),
        }
    }
}

/// A tensor of integers that stand for numbers, with scales that are known.
struct Quantised {
    integers: ValueId,
    element: ElementType,
    scales: Vec<f32>,
    zero: Option<ValueId>,
    /// One zero point, or one for each scale.
    zeros: Vec<i64>,
    /// The dimension to whose places the scales belong, where there are several.
    axis: i64,
}

impl Quantised {
    /// The quantised tensor from which a value is dequantised.
    fn of(graph: &Rewriter<'_>, value: Option<ValueId>) -> Option<Self> {
        let call = graph.call(value?).filter(|call| call.operator.name == "dequantize_linear")?;
        let integers = call.inputs[0]?;
        let element = graph.builder.ty(integers).element()?;
        let int = |name: &str, default: i64| match call.attributes.get(name) {
            Some(Attribute::Int(value)) => *value,
            _ => default,
        };
        if int("block_size", 0) != 0 || call.attributes.get("output_dtype").is_some() {
            return None;
        }
        let scale = graph.constant(call.inputs[1]?)?;
        let zero = call.inputs.get(2).copied().flatten();
        let zeros = match zero {
            None => vec![0],
            Some(zero) => integers_of(graph.constant(zero)?)?,
        };
        let scales = (scale.rank() <= 1).then(|| scale.as_slice::<f32>())??.to_vec();
        let usable = scales.iter().all(|scale| scale.is_normal() && *scale > 0.0);
        (usable && (zeros.len() == 1 || zeros.len() == scales.len())).then_some(Quantised {
            integers,
            element,
            scales,
            zero,
            zeros,
            axis: int("axis", 1),
        })
    }

    fn is_byte(&self) -> bool {
        matches!(self.element, ElementType::U8 | ElementType::I8)
    }

    /// The greatest distance of a byte from the only zero point.
    fn reach(&self) -> Option<i64> {
        let (low, high) = if self.element == ElementType::U8 { (0, 255) } else { (-128, 127) };
        self.zeros.iter().map(|zero| (zero - low).abs().max((high - zero).abs())).max()
    }

    /// Whether all of the tensor has one scale and one zero point.
    fn is_uniform(&self) -> bool {
        self.scales.len() == 1
    }

    /// Whether several scales belong to a dimension of a tensor of some rank.
    fn lies_along(&self, dimension: usize, rank: usize) -> bool {
        let axis = if self.axis < 0 { self.axis + rank as i64 } else { self.axis };
        self.is_uniform() || axis == dimension as i64
    }
}

fn integers_of(tensor: &HostTensor) -> Option<Vec<i64>> {
    Some(tensor.cast(ElementType::I64).ok()?.as_slice::<i64>()?.to_vec())
}

/// The scales of products, and where they lie.
fn product_scale(graph: &mut Rewriter<'_>, left: &Quantised, right: &Quantised) -> ValueId {
    let scales: Vec<f32> = right.scales.iter().map(|scale| left.scales[0] * scale).collect();
    let tensor = if scales.len() == 1 { HostTensor::scalar(scales[0]) } else { HostTensor::vector(scales) };
    graph.add_constant(tensor)
}

fn call(name: &str, inputs: Vec<Option<ValueId>>, attributes: Attributes) -> Result<Call, BuildError> {
    let operator = operator::find(name).ok_or_else(|| BuildError::UnknownOperator(name.to_owned()))?;
    Ok(Call { operator, inputs, attributes })
}

/// Sums as numbers.
fn dequantize(
    graph: &mut Rewriter<'_>,
    sums: ValueId,
    scale: ValueId,
    axis: i64,
) -> Result<Option<Vec<ValueId>>, BuildError> {
    let attributes = Attributes::none().with("axis", Attribute::Int(axis));
    let call = call("dequantize_linear", vec![Some(sums), Some(scale)], attributes)?;
    graph.add_call(call, 1).map(Some)
}

fn integer_inputs(left: &Quantised, right: &Quantised) -> Vec<Option<ValueId>> {
    vec![Some(left.integers), Some(right.integers), left.zero, right.zero]
}

fn matmul(graph: &mut Rewriter<'_>, matmul: &Call) -> Result<Option<Vec<ValueId>>, BuildError> {
    let (Some(left), Some(right)) =
        (Quantised::of(graph, matmul.inputs[0]), Quantised::of(graph, matmul.inputs[1]))
    else {
        return Ok(None);
    };
    let extents = graph.builder.ty(right.integers).extents().map(<[_]>::to_vec).unwrap_or_default();
    let rank = extents.len();
    let depth = rank.checked_sub(2).and_then(|place| extents[place].as_constant());
    let (Some(of_left), Some(of_right), Some(depth)) = (left.reach(), right.reach(), depth) else {
        return Ok(None);
    };
    // A constant operand bounds the sums more closely, but none of this length needs that.
    let fits = of_left
        .checked_mul(of_right)
        .and_then(|most| most.checked_mul(depth))
        .is_some_and(|most| most <= i64::from(i32::MAX));
    if !fits || !left.is_byte() || !right.is_byte() || !left.is_uniform() || !right.lies_along(rank - 1, rank)
    {
        return Ok(None);
    }
    let scale = product_scale(graph, &left, &right);
    let integer = call("matmul_integer", integer_inputs(&left, &right), Attributes::none())?;
    let sums = graph.add_call(integer, 1)?[0];
    dequantize(graph, sums, scale, -1)
}

fn conv(graph: &mut Rewriter<'_>, conv: &Call) -> Result<Option<Vec<ValueId>>, BuildError> {
    let (Some(x), Some(weights)) =
        (Quantised::of(graph, conv.inputs[0]), Quantised::of(graph, conv.inputs[1]))
    else {
        return Ok(None);
    };
    let extents = graph.builder.ty(weights.integers).extents().map(<[_]>::to_vec).unwrap_or_default();
    let fixed: Option<Vec<i64>> = extents.iter().map(crate::symbolic::SymInt::as_constant).collect();
    let (Some(fixed), Some(of_x), Some(of_weights)) = (fixed, x.reach(), weights.reach()) else {
        return Ok(None);
    };
    let products = fixed.iter().skip(1).try_fold(1i64, |count, &extent| count.checked_mul(extent));
    let most = products.and_then(|count| count.checked_mul(of_x)?.checked_mul(of_weights));
    let bias = conv.inputs.get(2).copied().flatten();
    let (Some(mut most), false) = (most, fixed.len() < 2) else { return Ok(None) };
    if !x.is_byte() || !weights.is_byte() || !x.is_uniform() || !weights.lies_along(0, fixed.len()) {
        return Ok(None);
    }
    let added = match bias {
        None => None,
        Some(bias) => match integer_bias(graph, bias, &x, &weights) {
            None => return Ok(None),
            Some(numbers) => {
                most = most
                    .saturating_add(numbers.iter().map(|&number| i64::from(number).abs()).max().unwrap_or(0));
                Some(numbers)
            }
        },
    };
    if most > i64::from(i32::MAX) {
        return Ok(None);
    }
    let scale = product_scale(graph, &x, &weights);
    let integer = call("conv_integer", integer_inputs(&x, &weights), conv.attributes.clone())?;
    let mut sums = graph.add_call(integer, 1)?[0];
    if let Some(numbers) = added {
        let shape: Vec<usize> =
            std::iter::once(numbers.len()).chain(std::iter::repeat_n(1, fixed.len() - 2)).collect();
        let Ok(tensor) = HostTensor::new(&shape, numbers) else { return Ok(None) };
        let bias = graph.add_constant(tensor);
        sums = graph.add_call(call("add", vec![Some(sums), Some(bias)], Attributes::none())?, 1)?[0];
    }
    dequantize(graph, sums, scale, 1)
}

/// A bias as integers that can be added to sums: its scales have to be those of the products.
fn integer_bias(graph: &Rewriter<'_>, bias: ValueId, x: &Quantised, weights: &Quantised) -> Option<Vec<i32>> {
    let bias = Quantised::of(graph, Some(bias))?;
    let numbers = graph.constant(bias.integers)?.as_slice::<i32>()?.to_vec();
    let count = numbers.len();
    let at = |scales: &[f32], place: usize| {
        if scales.len() == 1 { Some(scales[0]) } else { scales.get(place).copied() }
    };
    let equal = |place: usize| {
        let (own, product) = (at(&bias.scales, place)?, x.scales[0] * at(&weights.scales, place)?);
        Some((own - product).abs() <= 1e-5 * product)
    };
    let same = (0..count).all(|place| equal(place) == Some(true));
    (same && bias.zeros.iter().all(|&zero| zero == 0)).then_some(numbers)
}

/// Numbers that are read from integers and stored as integers of another scale.
fn requantize(graph: &mut Rewriter<'_>, quantize: &Call) -> Result<Option<Vec<ValueId>>, BuildError> {
    let named = ["block_size", "precision", "output_dtype"]
        .iter()
        .any(|name| quantize.attributes.get(name).is_some());
    let Some(source) = Quantised::of(graph, quantize.inputs[0]).filter(|_| !named) else { return Ok(None) };
    let (Some(scale), Some(zero)) = (quantize.inputs[1], quantize.inputs.get(2).copied().flatten()) else {
        return Ok(None);
    };
    let is_sum = source.element == ElementType::I32 && source.zeros.iter().all(|&zero| zero == 0);
    let known =
        graph.constant(scale).filter(|scale| scale.len() == 1).and_then(|scale| scale.as_slice::<f32>());
    let Some(&[scale]) = known else { return Ok(None) };
    let bits = graph.builder.ty(zero).element().and_then(ElementType::dtype).map(|dtype| dtype.bits());
    let is_requantised = is_sum && scale.is_normal() && scale > 0.0 && bits == Some(8);
    if !is_requantised {
        return Ok(None);
    }
    let factors: Vec<f32> = source.scales.iter().map(|own| own / scale).collect();
    let factors =
        if factors.len() == 1 { HostTensor::scalar(factors[0]) } else { HostTensor::vector(factors) };
    let factors = graph.add_constant(factors);
    let attributes = Attributes::none().with("axis", Attribute::Int(source.axis));
    graph
        .add_call(call("requantize", vec![Some(source.integers), Some(factors), Some(zero)], attributes)?, 1)
        .map(Some)
}

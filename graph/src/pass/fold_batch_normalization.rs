//! A batch normalisation by constants becomes part of the weights and the bias of the convolution before it, or a product and a sum.
//!
//! `scale · (x - mean) / √(variance + ε) + shift` is `x · k + (shift - mean · k)` with `k = scale / √(variance + ε)` for each channel, and
//! for `x = conv(y, w) + b` it is `conv(y, w · k) + (b · k + shift - mean · k)`. New constants are computed in `f64` and rounded once. A product
//! and a sum join what comes before and after them, which may be a convolution, too.

use crate::build::BuildError;
use crate::ir::{Attribute, Call, ValueId};
use crate::pass::{CallRule, Rewriter};
use crate::symbolic::SymInt;
use crate::tensor::{ElementType, HostTensor};

/// Changes weights so that normalisations are not needed, or makes them arithmetic.
pub(super) struct FoldBatchNormalization;

impl CallRule for FoldBatchNormalization {
    fn rewrite_call(
        &mut self,
        graph: &mut Rewriter<'_>,
        call: &Call,
    ) -> Result<Option<Vec<ValueId>>, BuildError> {
        if call.operator.name != "batch_normalization" {
            return Ok(None);
        }
        let (Some(x), Some(line)) = (call.inputs[0], Line::of(graph, call)) else { return Ok(None) };
        if let Some((convolution, weights, bias)) = folded(graph, x, &line) {
            let (weights, bias) = (graph.add_constant(weights), graph.add_constant(bias));
            let inputs = vec![convolution.inputs[0], Some(weights), Some(bias)];
            return graph.add_call(Call { inputs, ..convolution }, 1).map(Some);
        }
        let ty = graph.builder.ty(x);
        // Shorter floats would round the product before the sum.
        let element = ty.element().filter(|element| matches!(element, ElementType::F32 | ElementType::F64));
        let (Some(element), Some(extents)) = (element, ty.extents()) else { return Ok(None) };
        let along = |numbers: &[f64]| along_channels(numbers, element, extents);
        let (Some(factors), Some(offsets)) = (along(&line.factors), along(&line.offsets)) else {
            return Ok(None);
        };
        let (factors, offsets) = (graph.add_constant(factors), graph.add_constant(offsets));
        let product = graph.add_plain_call("mul", &[x, factors])?;
        Ok(Some(vec![graph.add_plain_call("add", &[product, offsets])?]))
    }
}

/// The factor and the offset of a normalisation, for each channel.
struct Line {
    factors: Vec<f64>,
    offsets: Vec<f64>,
}

impl Line {
    /// That of a normalisation by finite constants.
    fn of(graph: &Rewriter<'_>, call: &Call) -> Option<Self> {
        if call.attributes.get("training_mode").is_some_and(|mode| *mode != Attribute::Int(0)) {
            return None;
        }
        let parameter = |place: usize| numbers(graph, call.inputs[place]);
        let (scale, shift, mean, variance) = (parameter(1)?, parameter(2)?, parameter(3)?, parameter(4)?);
        if [&shift, &mean, &variance].iter().any(|numbers| numbers.len() != scale.len()) {
            return None;
        }
        let epsilon = match call.attributes.get("epsilon") {
            Some(Attribute::Float(epsilon)) => f64::from(*epsilon),
            _ => f64::from(1e-5f32),
        };
        let factors: Vec<f64> = scale
            .iter()
            .zip(&variance)
            .map(|(scale, variance)| scale / (variance + epsilon).sqrt())
            .collect();
        let offsets: Vec<f64> = shift
            .iter()
            .zip(&mean)
            .zip(&factors)
            .map(|((shift, mean), factor)| shift - mean * factor)
            .collect();
        let is_finite = factors.iter().chain(&offsets).all(|number| number.is_finite());
        is_finite.then_some(Line { factors, offsets })
    }
}

/// The elements of a constant.
fn numbers(graph: &Rewriter<'_>, value: Option<ValueId>) -> Option<Vec<f64>> {
    let cast = graph.constant(value?)?.cast(ElementType::F64).ok()?;
    Some(cast.as_slice::<f64>()?.to_vec())
}

/// Numbers of channels as a tensor that meets the channels of tensors of some extents.
fn along_channels(numbers: &[f64], element: ElementType, extents: &[SymInt]) -> Option<HostTensor> {
    if !extents.get(1)?.is(numbers.len() as i64) {
        return None;
    }
    let mut shape = vec![1; extents.len() - 1];
    shape[0] = numbers.len();
    HostTensor::new(&shape, numbers.to_vec()).ok()?.cast(element).ok()
}

/// The convolution before a normalisation, with new weights and bias.
fn folded(graph: &Rewriter<'_>, input: ValueId, line: &Line) -> Option<(Call, HostTensor, HostTensor)> {
    let convolution = graph.call(input).filter(|inner| inner.operator.name == "conv")?;
    if !graph.used_once(input) {
        return None;
    }
    let weights = graph.constant(convolution.inputs[1]?)?;
    let channels = *weights.shape().first()?;
    let bias = match convolution.inputs.get(2).copied().flatten() {
        None => vec![0.0; channels],
        bias => numbers(graph, bias)?,
    };
    if line.factors.len() != channels || bias.len() != channels {
        return None;
    }
    let wide = weights.cast(ElementType::F64).ok()?;
    let run = weights.len().checked_div(channels)?;
    let scaled = wide
        .as_slice::<f64>()?
        .iter()
        .enumerate()
        .map(|(place, weight)| weight * line.factors[place / run])
        .collect();
    let moved = (0..channels).map(|c| bias[c] * line.factors[c] + line.offsets[c]).collect();
    let weights_tensor = HostTensor::new(weights.shape(), scaled).ok()?.cast(weights.element()).ok()?;
    let bias_tensor = HostTensor::vector::<f64>(moved).cast(weights.element()).ok()?;
    Some((convolution.clone(), weights_tensor, bias_tensor))
}

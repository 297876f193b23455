//! A batch normalisation after a convolution with constant weights becomes part of its weights and bias.
//!
//! `scale · (conv(x, w) + b - mean) / √(variance + ε) + shift` is `conv(x, w · k) + (b - mean) · k + shift` with
//! `k = scale / √(variance + ε)` for each channel. New weights are computed in `f64` and rounded once.

use crate::build::BuildError;
use crate::ir::{Attribute, Call, ValueId};
use crate::pass::{CallRule, Rewriter};
use crate::tensor::{ElementType, HostTensor};

/// Changes weights so that normalisations are not needed.
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
        let Some((convolution, weights, bias)) = folded(graph, call) else { return Ok(None) };
        let (weights, bias) = (graph.add_constant(weights), graph.add_constant(bias));
        let inputs = vec![convolution.inputs[0], Some(weights), Some(bias)];
        graph.add_call(Call { inputs, ..convolution }, 1).map(Some)
    }
}

/// The convolution before a normalisation, with new weights and bias.
fn folded(graph: &Rewriter<'_>, call: &Call) -> Option<(Call, HostTensor, HostTensor)> {
    if call.attributes.get("training_mode").is_some_and(|mode| *mode != Attribute::Int(0)) {
        return None;
    }
    let input = call.inputs[0]?;
    let convolution = graph.call(input).filter(|inner| inner.operator.name == "conv")?;
    if !graph.used_once(input) {
        return None;
    }
    let weights = graph.constant(convolution.inputs[1]?)?;
    let channels = *weights.shape().first()?;
    let numbers = |value: Option<ValueId>| -> Option<Vec<f64>> {
        let cast = graph.constant(value?)?.cast(ElementType::F64).ok()?;
        Some(cast.as_slice::<f64>()?.to_vec()).filter(|numbers| numbers.len() == channels)
    };
    let parameter = |place: usize| numbers(call.inputs[place]);
    let (scale, shift, mean, variance) = (parameter(1)?, parameter(2)?, parameter(3)?, parameter(4)?);
    let bias = match convolution.inputs.get(2).copied().flatten() {
        None => vec![0.0; channels],
        bias => numbers(bias)?,
    };
    let epsilon = match call.attributes.get("epsilon") {
        Some(Attribute::Float(epsilon)) => f64::from(*epsilon),
        _ => f64::from(1e-5f32),
    };
    let factors: Vec<f64> =
        scale.iter().zip(&variance).map(|(scale, variance)| scale / (variance + epsilon).sqrt()).collect();
    let wide = weights.cast(ElementType::F64).ok()?;
    let run = weights.len().checked_div(channels)?;
    let scaled = wide
        .as_slice::<f64>()?
        .iter()
        .enumerate()
        .map(|(place, weight)| weight * factors[place / run])
        .collect();
    let moved = (0..channels).map(|c| (bias[c] - mean[c]) * factors[c] + shift[c]).collect();
    let weights_tensor = HostTensor::new(weights.shape(), scaled).ok()?.cast(weights.element()).ok()?;
    let bias_tensor = HostTensor::vector::<f64>(moved).cast(weights.element()).ok()?;
    Some((convolution.clone(), weights_tensor, bias_tensor))
}

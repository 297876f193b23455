//! Losses of classifiers, which models that are evaluated may end in.

use crate::ir::{Attribute, ValueId};
use crate::onnx::import::expansion::Expansion;
use crate::onnx::import::meaning::{Meaning, Translated};
use crate::onnx::import::upgrade::Refusal;
use crate::tensor::ElementType;

pub(super) const MEANINGS: &[Meaning] = &[
    ("", "NegativeLogLikelihoodLoss", |node| Ok(vec![negative_log_likelihood(node, node.input(0)?)?])),
    ("", "SoftmaxCrossEntropyLoss", cross_entropy),
];

/// The loss of scores `[batch, classes, …]`, and the logarithms of probabilities.
fn cross_entropy(node: &mut Expansion<'_, '_>) -> Translated {
    let scores = node.input(0)?;
    let logarithms = node.call("log_softmax", &[scores], &[("axis", Attribute::Int(1))])?;
    Ok(vec![negative_log_likelihood(node, logarithms)?, logarithms])
}

/// The weighted, negated logarithms of the probabilities of the classes in the second input; or their sum, or their weighted mean.
fn negative_log_likelihood(node: &mut Expansion<'_, '_>, logarithms: ValueId) -> Result<ValueId, Refusal> {
    let element = node.element(logarithms, "the probabilities")?;
    let ignored = node.int("ignore_index")?;
    let reduction = node.text("reduction")?;
    let classes = node.input(1)?;
    let mut classes = node.call("cast", &[classes], &[("to", Attribute::Element(ElementType::I64))])?;
    let mut is_ignored = None;
    if let Some(ignored) = ignored {
        let ignored = node.number(ignored as f64, ElementType::I64)?;
        let matches = node.call("equal", &[classes, ignored], &[])?;
        // The number that is ignored need not be a class.
        let first = node.number(0.0, ElementType::I64)?;
        classes = node.call("where", &[matches, first, classes], &[])?;
        is_ignored = Some(matches);
    }
    let (along, places) = (node.integers(&[1]), node.unsqueeze(classes, &[1])?);
    let chosen = node.call("gather_elements", &[logarithms, places], &[("axis", Attribute::Int(1))])?;
    let chosen = node.call("squeeze", &[chosen, along], &[])?;
    let mut losses = node.call("neg", &[chosen], &[])?;
    let mut weights = match node.optional(2) {
        Some(weights) => Some(node.call("gather", &[weights, classes], &[("axis", Attribute::Int(0))])?),
        None => None,
    };
    if let Some(is_ignored) = is_ignored {
        let (zero, one) = (node.number(0.0, element)?, node.number(1.0, element)?);
        weights = Some(node.call("where", &[is_ignored, zero, weights.unwrap_or(one)], &[])?);
    }
    if let Some(weights) = weights {
        losses = node.call("mul", &[losses, weights], &[])?;
    }
    let all = [("keepdims", Attribute::Int(0))];
    match (&reduction[..], weights) {
        ("none", _) => Ok(losses),
        ("sum", _) => node.call("reduce_sum", &[losses], &all),
        ("" | "mean", None) => node.call("reduce_mean", &[losses], &all),
        ("" | "mean", Some(weights)) => {
            let (losses, weights) =
                (node.call("reduce_sum", &[losses], &all)?, node.call("reduce_sum", &[weights], &all)?);
            node.call("div", &[losses, weights], &[])
        }
        (other, _) => Err(Refusal(format!("attribute reduction must be none, sum or mean, not {other}"))),
    }
}

//! Operators that ONNX Runtime makes of several nodes when it optimises a model (`com.microsoft`).

use crate::ir::{Attribute, ValueId};
use crate::onnx::import::expansion::{Expansion, Extent};
use crate::onnx::import::meaning::{Meaning, Translated};
use crate::onnx::import::upgrade::Refusal;
use crate::tensor::ElementType;

pub(super) const MEANINGS: &[Meaning] = &[
    ("com.microsoft", "Gelu", |node| Ok(vec![node.forward("gelu", &[])?])),
    ("com.microsoft", "FusedConv", convolution),
    ("com.microsoft", "FusedGemm", product),
    ("com.microsoft", "SkipLayerNormalization", |node| skip(node, "layer_normalization", 4)),
    ("com.microsoft", "SkipSimplifiedLayerNormalization", |node| skip(node, "rms_normalization", 3)),
    ("com.microsoft", "EmbedLayerNormalization", embedding),
];

/// The `epsilon` of a node that names none.
const USUAL_EPSILON: f32 = 1e-12;

/// A convolution, with what the fourth input adds, and a function of the sum.
fn convolution(node: &mut Expansion<'_, '_>) -> Translated {
    let function = node.text("activation")?;
    let parameters = match node.node.attributes.take("activation_params") {
        None => Vec::new(),
        Some(Attribute::Floats(parameters)) => parameters,
        Some(_) => return Err(Refusal("attribute activation_params must be numbers".to_owned())),
    };
    let added = node.optional(3);
    node.node.inputs.truncate(3);
    let mut result = node.forward("conv", &[])?;
    if let Some(added) = added {
        result = node.call("add", &[result, added], &[])?;
    }
    Ok(vec![activated(node, result, &function, &parameters)?])
}

/// A product of matrices, and a function of it.
fn product(node: &mut Expansion<'_, '_>) -> Translated {
    let function = node.text("activation")?;
    let mut parameters = Vec::new();
    for name in ["activation_alpha", "activation_beta", "activation_gamma"] {
        parameters.extend(node.float(name)?);
    }
    let result = node.forward("gemm", &[])?;
    Ok(vec![activated(node, result, &function, &parameters)?])
}

/// A function, by its name in ONNX and its parameters in the order of ONNX Runtime.
fn activated(
    node: &mut Expansion<'_, '_>,
    x: ValueId,
    function: &str,
    parameters: &[f32],
) -> Result<ValueId, Refusal> {
    let named: &[&str] = match function {
        "" => return Ok(x),
        "Relu" | "Tanh" | "Sigmoid" | "Softplus" | "HardSwish" => &[],
        "LeakyRelu" | "Elu" => &["alpha"],
        "HardSigmoid" => &["alpha", "beta"],
        "Clip" => {
            let &[low, high] = parameters else {
                return Err(Refusal("the function Clip takes two numbers".to_owned()));
            };
            let element = node.element(x, "the sum")?;
            let bounds = [node.number(low.into(), element)?, node.number(high.into(), element)?];
            return node.call("clip", &[x, bounds[0], bounds[1]], &[]);
        }
        other => return Err(Refusal(format!("the function {other} is not supported"))),
    };
    let attributes: Vec<(&str, Attribute)> =
        named.iter().zip(parameters).map(|(&name, &value)| (name, Attribute::Float(value))).collect();
    let operator = crate::operator::find_onnx("", function)
        .ok_or_else(|| Refusal(format!("the function {function} is not known")))?;
    node.call(operator.name, &[x], &attributes)
}

/// A normalisation of the sum of two tensors and, in the input `bias`, a vector. Outputs: the normalised sum, the mean and the inverse
/// deviation of each row, and the sum.
fn skip(node: &mut Expansion<'_, '_>, operator: &str, bias: usize) -> Translated {
    let epsilon = node.float("epsilon")?.unwrap_or(USUAL_EPSILON);
    let mut sum = node.call("add", &[node.input(0)?, node.input(1)?], &[])?;
    if let Some(bias) = node.optional(bias) {
        sum = node.call("add", &[sum, bias], &[])?;
    }
    let mut inputs = vec![sum, node.input(2)?];
    inputs.extend(if bias == 4 { node.optional(3) } else { None });
    let attributes = [("axis", Attribute::Int(-1)), ("epsilon", Attribute::Float(epsilon))];
    let has_statistics = node.is_used(1) || node.is_used(2);
    if has_statistics && operator != "layer_normalization" {
        return Err(Refusal("the outputs 1 and 2 are not supported".to_owned()));
    }
    let mut results = node.call_for(operator, &inputs, &attributes, if has_statistics { 3 } else { 1 })?;
    // Outputs without a name are never read.
    results.resize(3, sum);
    results.push(sum);
    results.truncate(node.node.used.len().max(1));
    Ok(results)
}

/// Sums of the embeddings of words, positions and segments, normalised. Outputs: the normalised sums, the number of tokens of each
/// sequence that the mask leaves, and the sums.
fn embedding(node: &mut Expansion<'_, '_>) -> Translated {
    let epsilon = node.float("epsilon")?.unwrap_or(USUAL_EPSILON);
    let words = node.input(0)?;
    if node.rank(words, "the words")? != 2 {
        return Err(Refusal("words must be `[batch, tokens]`".to_owned()));
    }
    let along = [("axis", Attribute::Int(0))];
    let positions = match node.optional(8) {
        Some(positions) => positions,
        None => node.places(Extent::Of(words, 1), 0)?,
    };
    let mut sum = node.call("gather", &[node.input(2)?, words], &along)?;
    let of_position = node.call("gather", &[node.input(3)?, positions], &along)?;
    sum = node.call("add", &[sum, of_position], &[])?;
    if let (Some(segments), Some(table)) = (node.optional(1), node.optional(4)) {
        let of_segment = node.call("gather", &[table, segments], &along)?;
        sum = node.call("add", &[sum, of_segment], &[])?;
    }
    let mut inputs = vec![sum, node.input(5)?];
    inputs.extend(node.optional(6));
    let attributes = [("axis", Attribute::Int(-1)), ("epsilon", Attribute::Float(epsilon))];
    let normalised = node.call("layer_normalization", &inputs, &attributes)?;
    let counts = match node.optional(7) {
        Some(mask) => {
            let axis = node.integers(&[1]);
            node.call("reduce_sum", &[mask, axis], &[("keepdims", Attribute::Int(0))])?
        }
        None => {
            let shape = node.call("shape", &[words], &[])?;
            let (zero, one) = (node.integers(&[0]), node.integers(&[1]));
            let batch = node.call("slice", &[shape, zero, one], &[])?;
            let zeros = node.call("constant_of_shape", &[batch], &[])?;
            node.call("cast", &[zeros], &[("to", Attribute::Element(ElementType::I32))])?
        }
    };
    let mut results = vec![normalised, counts, sum];
    results.truncate(node.node.used.len().max(1));
    Ok(results)
}

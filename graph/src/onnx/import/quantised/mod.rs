//! Quantised operators of ONNX Runtime (`com.microsoft`), expressed by conversions around operators of the table.
//!
//! The conversions become parts of the operators' kernels, or products of integers, as those of files do that write them out.

mod attention;
mod blocks;
mod gather;

use crate::build::GraphBuilder;
use crate::ir::{Attribute, Attributes, ValueId};
use crate::onnx::import::upgrade::{Node, Refusal};
use crate::tensor::HostTensor;

type Translated = Result<Vec<ValueId>, Refusal>;

/// How an operator is translated: by the operator that it applies to numbers, or by a function.
enum Means {
    /// To all quantised inputs, three places each, before the scale and zero point of the result.
    Operator(&'static str),
    Function(fn(&mut Quantised<'_, '_>) -> Translated),
}

const MEANINGS: &[(&str, Means)] = &[
    ("QLinearAdd", Means::Operator("add")),
    ("QLinearMul", Means::Operator("mul")),
    ("QLinearSigmoid", Means::Operator("sigmoid")),
    ("QLinearLeakyRelu", Means::Operator("leaky_relu")),
    ("QLinearSoftmax", Means::Operator("softmax")),
    ("QLinearAveragePool", Means::Operator("average_pool")),
    ("QLinearGlobalAveragePool", Means::Operator("global_average_pool")),
    ("QLinearConcat", Means::Function(concat)),
    ("QGemm", Means::Function(gemm)),
    ("QLinearWhere", Means::Function(choose)),
    ("QLinearReduceMean", Means::Function(mean)),
    ("MatMulIntegerToFloat", Means::Function(product_to_numbers)),
    ("DynamicQuantizeMatMul", Means::Function(dynamic_product)),
    ("QuantizeLinear", Means::Function(|node| node.rename("quantize_linear"))),
    ("DequantizeLinear", Means::Function(|node| node.rename("dequantize_linear"))),
    ("MatMulNBits", Means::Function(blocks::product)),
    ("GatherBlockQuantized", Means::Function(gather::gather)),
    ("QAttention", Means::Function(attention::attention)),
];

/// Whether an operator is translated here.
pub(super) fn is_known(domain: &str, operator: &str) -> bool {
    domain == "com.microsoft" && MEANINGS.iter().any(|(name, _)| *name == operator)
}

/// Adds the calls that a node means.
pub(super) fn translate(node: Node<'_>, builder: &mut GraphBuilder) -> Translated {
    let Some((_, means)) = MEANINGS.iter().find(|(name, _)| *name == node.operator) else {
        return Err(Refusal(format!("the operator {} is not known", node.operator)));
    };
    let mut quantised = Quantised { node, builder };
    match means {
        Means::Operator(operator) => quantised.apply(operator),
        Means::Function(function) => function(&mut quantised),
    }
}

/// A node with quantised inputs.
struct Quantised<'n, 'b> {
    node: Node<'n>,
    builder: &'b mut GraphBuilder,
}

impl Quantised<'_, '_> {
    fn optional(&self, place: usize) -> Option<ValueId> {
        self.node.inputs.get(place).copied().flatten()
    }

    fn input(&self, place: usize) -> Result<ValueId, Refusal> {
        self.optional(place).ok_or_else(|| Refusal(format!("input {place} is missing")))
    }

    /// As [`Node::count`], with the value where the attribute is missing.
    fn int(&mut self, name: &str, default: i64) -> Result<i64, Refusal> {
        Ok(self.node.count(name)?.unwrap_or(default))
    }

    fn call(
        &mut self,
        operator: &str,
        inputs: &[ValueId],
        attributes: Attributes,
    ) -> Result<ValueId, Refusal> {
        Ok(self.builder.call(operator, inputs, attributes)?)
    }

    fn call_optional(
        &mut self,
        operator: &str,
        inputs: Vec<Option<ValueId>>,
        attributes: Attributes,
    ) -> Result<ValueId, Refusal> {
        let results = self.builder.call_operator(operator, inputs, attributes, 1)?;
        Ok(results[0])
    }

    /// The numbers of a quantised input, which is followed by its scale and zero point.
    fn numbers(&mut self, place: usize) -> Result<ValueId, Refusal> {
        let inputs = vec![Some(self.input(place)?), Some(self.input(place + 1)?), self.optional(place + 2)];
        self.call_optional("dequantize_linear", inputs, Attributes::none())
    }

    /// Numbers stored with the scale and zero point at two places. Without a zero point they are stored as the first quantised input is.
    fn store(&mut self, numbers: ValueId, place: usize, like: usize) -> Result<ValueId, Refusal> {
        let mut attributes = Attributes::none();
        if self.optional(place + 1).is_none()
            && let Some(element) = self.builder.ty(self.input(like)?).element()
        {
            attributes.set("output_dtype", Attribute::Element(element));
        }
        let inputs = vec![Some(numbers), Some(self.input(place)?), self.optional(place + 1)];
        self.call_optional("quantize_linear", inputs, attributes)
    }

    /// Applies an operator to the numbers of all quantised inputs.
    fn apply(&mut self, operator: &str) -> Translated {
        if self.int("channels_last", 0)? != 0 {
            return Err(Refusal("attribute channels_last must be 0".to_owned()));
        }
        self.node.attributes.take("opset");
        let operands = if matches!(operator, "add" | "mul") { 2 } else { 1 };
        let numbers =
            (0..operands).map(|operand| self.numbers(3 * operand)).collect::<Result<Vec<_>, _>>()?;
        let attributes = std::mem::replace(&mut self.node.attributes, Attributes::none());
        let result = self.call(operator, &numbers, attributes)?;
        Ok(vec![self.store(result, 3 * operands, 0)?])
    }

    /// The same operator of ONNX.
    fn rename(&mut self, operator: &str) -> Translated {
        let attributes = std::mem::replace(&mut self.node.attributes, Attributes::none());
        Ok(vec![self.call_optional(operator, self.node.inputs.clone(), attributes)?])
    }
}

/// Inputs: scale and zero point of the result, then tensors with theirs.
fn concat(node: &mut Quantised<'_, '_>) -> Translated {
    let count = node.node.inputs.len().saturating_sub(2) / 3;
    let numbers = (0..count).map(|operand| node.numbers(2 + 3 * operand)).collect::<Result<Vec<_>, _>>()?;
    let attributes = std::mem::replace(&mut node.node.attributes, Attributes::none());
    let joined = node.call("concat", &numbers, attributes)?;
    Ok(vec![node.store(joined, 0, 2)?])
}

/// Inputs: a condition, a tensor with its scale and zero point, another one with its own, scale and zero point of the result.
fn choose(node: &mut Quantised<'_, '_>) -> Translated {
    let condition = node.input(0)?;
    let (yes, no) = (node.numbers(1)?, node.numbers(4)?);
    let chosen = node.call("where", &[condition, yes, no], Attributes::none())?;
    Ok(vec![node.store(chosen, 7, 1)?])
}

/// Inputs: a tensor with its scale and zero point, scale and zero point of the result.
fn mean(node: &mut Quantised<'_, '_>) -> Translated {
    let numbers = node.numbers(0)?;
    let mut inputs = vec![numbers];
    match node.node.attributes.take("axes") {
        None => {}
        Some(Attribute::Ints(axes)) => inputs.push(node.builder.constant(HostTensor::vector(axes))),
        Some(_) => return Err(Refusal("attribute axes must be integers".to_owned())),
    }
    let attributes = std::mem::replace(&mut node.node.attributes, Attributes::none());
    let mean = node.call("reduce_mean", &inputs, attributes)?;
    Ok(vec![node.store(mean, 3, 0)?])
}

/// The product of integers as numbers: `integers` are both factors, `scales` theirs, `zeros` their zero points.
fn scaled_product(
    node: &mut Quantised<'_, '_>,
    integers: [ValueId; 2],
    scales: [ValueId; 2],
    zeros: [Option<ValueId>; 2],
    bias: Option<ValueId>,
) -> Translated {
    let inputs = integers.into_iter().map(Some).chain(zeros).collect();
    let sums = node.call_optional("matmul_integer", inputs, Attributes::none())?;
    let scale = node.call("mul", &scales, Attributes::none())?;
    let to = Attributes::none().with("to", Attribute::Element(crate::tensor::ElementType::F32));
    let numbers = node.call("cast", &[sums], to)?;
    let mut product = node.call("mul", &[numbers, scale], Attributes::none())?;
    if let Some(bias) = bias {
        product = node.call("add", &[product, bias], Attributes::none())?;
    }
    Ok(vec![product])
}

/// Inputs: a, b, the scales of both, the zero points of both, a bias of numbers.
fn product_to_numbers(node: &mut Quantised<'_, '_>) -> Translated {
    let (integers, scales) = ([node.input(0)?, node.input(1)?], [node.input(2)?, node.input(3)?]);
    let (zeros, bias) = ([node.optional(4), node.optional(5)], node.optional(6));
    scaled_product(node, integers, scales, zeros, bias)
}

/// Inputs: numbers, which are quantised to bytes by their range, b with its scale and zero point, a bias of numbers.
fn dynamic_product(node: &mut Quantised<'_, '_>) -> Translated {
    let numbers = vec![Some(node.input(0)?)];
    let quantised = node.builder.call_operator("dynamic_quantize_linear", numbers, Attributes::none(), 3)?;
    let (integers, scales) = ([quantised[0], node.input(1)?], [quantised[1], node.input(2)?]);
    let (zeros, bias) = ([Some(quantised[2]), node.optional(3)], node.optional(4));
    scaled_product(node, integers, scales, zeros, bias)
}

/// Inputs: a, its scale and zero point, b, its scale and zero point, a bias in units of both scales, scale and zero point of the
/// result. Without these, the result are numbers.
fn gemm(node: &mut Quantised<'_, '_>) -> Translated {
    match node.node.attributes.take("alpha") {
        None | Some(Attribute::Float(1.0)) => {}
        Some(_) => return Err(Refusal("attribute alpha must be 1".to_owned())),
    }
    let mut operands = [node.input(0)?, node.input(3)?];
    for (operand, name) in operands.iter_mut().zip(["transA", "transB"]) {
        if node.int(name, 0)? != 0 {
            let transposed = Attributes::none().with("perm", Attribute::Ints(vec![1, 0]));
            *operand = node.call("transpose", &[*operand], transposed)?;
        }
    }
    let inputs = vec![Some(operands[0]), Some(operands[1]), node.optional(2), node.optional(5)];
    let mut sums = node.call_optional("matmul_integer", inputs, Attributes::none())?;
    if let Some(bias) = node.optional(6) {
        sums = node.call("add", &[sums, bias], Attributes::none())?;
    }
    let scales = [node.input(1)?, node.input(4)?];
    let scale = node.call("mul", &scales, Attributes::none())?;
    let columns = || Attributes::none().with("axis", Attribute::Int(-1));
    let Some(of_result) = node.optional(7) else {
        return Ok(vec![node.call("dequantize_linear", &[sums, scale], columns())?]);
    };
    let scale = node.call("div", &[scale, of_result], Attributes::none())?;
    let zero = node.input(8)?;
    Ok(vec![node.call("requantize", &[sums, scale, zero], columns())?])
}

fn reshape(node: &mut Quantised<'_, '_>, value: ValueId, shape: &[i64]) -> Result<ValueId, Refusal> {
    let shape = node.builder.constant(HostTensor::vector(shape.to_vec()));
    node.call("reshape", &[value, shape], Attributes::none())
}

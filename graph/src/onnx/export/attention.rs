//! Attention as the steps that it is made of: ONNX has an operator for it since set 23 alone, and for four dimensions.

use crate::ir::{Attribute, Call, Type};
use crate::onnx::OnnxError;
use crate::onnx::export::Exporter;
use crate::onnx::export::node::attribute;
use crate::onnx::schema::{GraphProto, NodeProto};
use crate::onnx::tensor::write_tensor;
use crate::tensor::{ElementType, HostTensor};

impl Exporter<'_> {
    /// Adds the steps of a call of `attention` to a graph, without the last one, which it returns.
    pub(super) fn attention(
        &mut self,
        call: &Call,
        origin: &str,
        graph: &mut GraphProto,
    ) -> Result<NodeProto, OnnxError> {
        let inputs =
            call.inputs.iter().flatten().map(|&input| self.name(input)).collect::<Result<Vec<_>, _>>()?;
        let element = call.inputs[0].and_then(|input| match &self.function.value(input).ty {
            Type::Tensor(tensor) => tensor.element,
            _ => None,
        });
        let element =
            element.ok_or_else(|| self.refuse(origin, "the type of its elements is not known".to_owned()))?;
        let flag = |name: &str| matches!(call.attributes.get(name), Some(Attribute::Int(1)));
        // The call adds up in wide numbers, and rounds its result alone.
        let is_short = matches!(element, ElementType::F16 | ElementType::BF16);
        let wide = if is_short { ElementType::F32 } else { element };
        let mut steps = Steps { exporter: self, graph, origin, element: wide };
        let inputs: Vec<String> = match is_short {
            true => inputs.iter().map(|input| steps.add(cast(input, wide))).collect(),
            false => inputs,
        };

        let scores = match flag("keys_transposed") {
            true => node("MatMul", &[&inputs[0], &inputs[1]]),
            false => node("Einsum", &[&inputs[0], &inputs[1]])
                .with("equation", Attribute::Text("...rd,...cd->...rc".into())),
        };
        let mut scores = steps.add(scores);
        if let Some(&Attribute::Float(scale)) = call.attributes.get("scale") {
            let scale = steps.constant(scale);
            scores = steps.add(node("Mul", &[&scores, &scale]));
        }
        if let Some(mask) = inputs.get(3) {
            scores = steps.add(node("Add", &[&scores, mask]));
        }
        let mut weights = steps.add(node("Softmax", &[&scores]).with("axis", Attribute::Int(-1)));
        if flag("zero_if_masked") {
            weights = steps.zero_if_masked(&scores, &weights);
        }
        if flag("zero_if_nan") {
            weights = steps.zero_if_nan(&weights);
        }
        let result = node("MatMul", &[&weights, &inputs[2]]);
        if !is_short {
            return Ok(result.0);
        }
        let result = steps.add(result);
        Ok(cast(&result, element).0)
    }
}

/// The nodes and constants of one call.
struct Steps<'s, 'f> {
    exporter: &'s mut Exporter<'f>,
    graph: &'s mut GraphProto,
    origin: &'s str,
    /// The type of floats in which the steps compute.
    element: ElementType,
}

impl Steps<'_, '_> {
    /// Adds a node, and names its result.
    fn add(&mut self, node: Node) -> String {
        let name = self.exporter.fresh(&format!("{}_{}", self.origin, node.0.op_type));
        self.graph.node.push(NodeProto { output: vec![name.clone()], name: name.clone(), ..node.0 });
        name
    }

    /// Adds a constant number.
    fn constant(&mut self, number: f32) -> String {
        match self.element {
            ElementType::F64 => self.tensor(&HostTensor::scalar(f64::from(number))),
            _ => self.tensor(&HostTensor::scalar(number)),
        }
    }

    fn tensor(&mut self, tensor: &HostTensor) -> String {
        let name = self.exporter.fresh(&format!("{}_constant", self.origin));
        self.graph.initializer.push(write_tensor(&name, tensor));
        name
    }

    /// Zeros in place of the weights of a query whose scores are all -∞.
    fn zero_if_masked(&mut self, scores: &str, weights: &str) -> String {
        let last = self.tensor(&HostTensor::vector(vec![-1i64]));
        let largest = self.add(node("ReduceMax", &[scores, &last]).with("keepdims", Attribute::Int(1)));
        let [nothing, zero] = [f32::NEG_INFINITY, 0.0].map(|number| self.constant(number));
        let is_masked = self.add(node("Equal", &[&largest, &nothing]));
        self.add(node("Where", &[&is_masked, &zero, weights]))
    }

    /// Zeros in place of weights that are NaN.
    fn zero_if_nan(&mut self, weights: &str) -> String {
        let zero = self.constant(0.0);
        let is_nan = self.add(node("IsNaN", &[weights]));
        self.add(node("Where", &[&is_nan, &zero, weights]))
    }
}

/// A node without names.
struct Node(NodeProto);

impl Node {
    fn with(mut self, name: &str, value: Attribute) -> Self {
        self.0.attribute.push(attribute(name, &value));
        self
    }
}

fn node(operator: &str, inputs: &[&str]) -> Node {
    let input = inputs.iter().map(|&input| input.to_owned()).collect();
    Node(NodeProto { input, op_type: operator.to_owned(), ..NodeProto::default() })
}

fn cast(value: &str, to: ElementType) -> Node {
    node("Cast", &[value]).with("to", Attribute::Element(to))
}

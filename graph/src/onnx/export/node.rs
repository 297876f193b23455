//! Calls of operators as nodes.

use crate::ir::{Attribute, Call};
use crate::onnx::OnnxError;
use crate::onnx::export::Exporter;
use crate::onnx::schema::{AttributeProto, NodeProto, attribute_type as kind};
use crate::onnx::tensor::{element_number, write_tensor};

/// Operators, or attributes of them, that came after [`BASE`](super::BASE), and the operator set that they came with.
const LATER: &[(&str, Option<&str>, i64)] = &[
    ("RMSNormalization", None, 23),
    ("QuantizeLinear", Some("precision"), 23),
    ("DequantizeLinear", Some("output_dtype"), 23),
    ("Cast", Some("round_mode"), 24),
    ("CastLike", Some("round_mode"), 25),
    ("Swish", None, 24),
    ("CumProd", None, 26),
];

impl Exporter<'_> {
    /// The node of a call.
    pub(super) fn call(&mut self, call: &Call, outputs: usize, origin: &str) -> Result<NodeProto, OnnxError> {
        let operator = call.operator;
        if !matches!(operator.domain, "" | "com.microsoft") {
            return Err(self.refuse(origin, format!("ONNX has no operator like `{}`", operator.name)));
        }
        if !operator.domain.is_empty() && !self.domains.iter().any(|domain| domain == operator.domain) {
            self.domains.push(operator.domain.to_owned());
        }
        let later = LATER.iter().filter(|(name, attribute, _)| {
            *name == operator.onnx
                && operator.domain.is_empty()
                && attribute.is_none_or(|attribute| call.attributes.get(attribute).is_some())
        });
        self.version = later.map(|(.., since)| *since).fold(self.version, i64::max);
        let given = call.inputs.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        let input = call.inputs[..given]
            .iter()
            .map(|input| input.map_or_else(|| Ok(String::new()), |input| self.name(input)));
        let mut node = NodeProto {
            input: input.collect::<Result<_, _>>()?,
            op_type: operator.onnx.to_owned(),
            domain: operator.domain.to_owned(),
            attribute: call.attributes.iter().map(|(name, value)| attribute(name, value)).collect(),
            ..NodeProto::default()
        };
        // Here the number of parts may follow from that of the outputs, as it did in old versions.
        if operator.name == "split" && given < 2 && call.attributes.get("num_outputs").is_none() {
            node.attribute.push(attribute("num_outputs", &Attribute::Int(outputs as i64)));
        }
        Ok(node)
    }
}

/// An attribute as a file has it.
pub(super) fn attribute(name: &str, value: &Attribute) -> AttributeProto {
    let mut proto = AttributeProto { name: name.to_owned(), ..AttributeProto::default() };
    proto.r#type = match value {
        Attribute::Int(value) => {
            proto.i = *value;
            kind::INT
        }
        Attribute::Element(element) => {
            proto.i = i64::from(element_number(*element));
            kind::INT
        }
        Attribute::Float(value) => {
            proto.f = *value;
            kind::FLOAT
        }
        Attribute::Text(value) => {
            proto.s = bytes_of(value);
            kind::STRING
        }
        Attribute::Ints(values) => {
            proto.ints.clone_from(values);
            kind::INTS
        }
        Attribute::Floats(values) => {
            proto.floats.clone_from(values);
            kind::FLOATS
        }
        Attribute::Texts(values) => {
            proto.strings = values.iter().map(|value| bytes_of(value)).collect();
            kind::STRINGS
        }
        Attribute::Tensor(tensor) => {
            proto.t = Some(write_tensor("", tensor));
            kind::TENSOR
        }
    };
    proto
}

fn bytes_of(text: &str) -> bytes::Bytes {
    bytes::Bytes::copy_from_slice(text.as_bytes())
}

//! Attributes of nodes.

use std::sync::Arc;

use crate::ir::{Attribute, Attributes};
use crate::onnx::import::{Importer, node_error};
use crate::onnx::schema::{AttributeProto, NodeProto, attribute_type as kind};
use crate::onnx::tensor::{element_type, element_type_name, read_sparse_tensor};
use crate::onnx::{OnnxError, import};

impl<'m> Importer<'m> {
    /// Attributes with those that refer to an attribute of the calling node replaced by it. A reference to an attribute that
    /// the calling node does not give is left out.
    pub(super) fn resolve(&self, attributes: &[AttributeProto]) -> Vec<AttributeProto> {
        let resolve = |attribute: &AttributeProto| {
            if attribute.ref_attr_name.is_empty() {
                return Some(attribute.clone());
            }
            let arguments = self.arguments.last()?;
            let argument = arguments.iter().find(|argument| argument.name == attribute.ref_attr_name)?;
            Some(AttributeProto { name: attribute.name.clone(), ..argument.clone() })
        };
        attributes.iter().filter_map(resolve).collect()
    }

    /// The attributes of a node that calls an operator.
    pub(super) fn attributes(&self, node: &NodeProto) -> Result<Attributes, OnnxError> {
        let mut attributes = Attributes::none();
        for attribute in self.resolve(&node.attribute) {
            let value = self
                .attribute(&attribute)
                .map_err(|reason| node_error(node, format!("attribute `{}`: {reason}", attribute.name)))?;
            attributes.set(&attribute.name, value);
        }
        Ok(attributes)
    }

    fn attribute(&self, attribute: &AttributeProto) -> Result<Attribute, String> {
        let text = |bytes: &bytes::Bytes| {
            std::str::from_utf8(bytes).map(Arc::from).map_err(|error| error.to_string())
        };
        Ok(match effective_kind(attribute) {
            // Element types are numbers in the file, by the attribute's name.
            kind::INT
                if matches!(&attribute.name[..], "to" | "dtype" | "output_dtype" | "output_datatype") =>
            {
                let number = i32::try_from(attribute.i).unwrap_or(0);
                let unsupported =
                    || format!("elements of type {} are not supported", element_type_name(number));
                // Zero stands for no type.
                if number == 0 {
                    return Ok(Attribute::Int(0));
                }
                Attribute::Element(element_type(number).ok_or_else(unsupported)?)
            }
            kind::INT => Attribute::Int(attribute.i),
            kind::FLOAT => Attribute::Float(attribute.f),
            kind::STRING => Attribute::Text(text(&attribute.s)?),
            kind::INTS => Attribute::Ints(attribute.ints.clone()),
            kind::FLOATS => Attribute::Floats(attribute.floats.clone()),
            kind::STRINGS => Attribute::Texts(attribute.strings.iter().map(text).collect::<Result<_, _>>()?),
            kind::TENSOR => {
                let tensor = attribute.t.as_ref().ok_or("the tensor is missing")?;
                Attribute::Tensor(self.model.tensor(tensor).map_err(|error| error.to_string())?)
            }
            kind::SPARSE_TENSOR => {
                let tensor = attribute.sparse_tensor.as_ref().ok_or("the tensor is missing")?;
                let read = read_sparse_tensor(tensor, &self.model.external, import::SPARSE_ELEMENTS);
                Attribute::Tensor(read.map_err(|error| error.to_string())?)
            }
            other => return Err(format!("attributes of kind {other} are not supported here")),
        })
    }
}

/// The kind that a file states, or, in old files that state none, the field that is filled.
fn effective_kind(attribute: &AttributeProto) -> i32 {
    match attribute {
        attribute if attribute.r#type != 0 => attribute.r#type,
        attribute if attribute.t.is_some() => kind::TENSOR,
        attribute if attribute.g.is_some() => kind::GRAPH,
        attribute if !attribute.ints.is_empty() => kind::INTS,
        attribute if !attribute.floats.is_empty() => kind::FLOATS,
        attribute if !attribute.strings.is_empty() => kind::STRINGS,
        attribute if !attribute.s.is_empty() => kind::STRING,
        attribute if attribute.f != 0.0 => kind::FLOAT,
        _ => kind::INT,
    }
}

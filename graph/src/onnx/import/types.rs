//! Types that files declare.

use crate::ir::{Shape, TensorType, Type};
use crate::onnx::schema::{ElementTypeProto, TypeProto, ValueInfoProto, dimension_proto, type_proto};
use crate::onnx::tensor::{element_type, element_type_name};
use crate::symbolic::SymInt;

/// The declared type of an input. A dimension without a usable extent becomes a symbol named after input and dimension.
pub(super) fn declared(info: &ValueInfoProto) -> Result<Type, String> {
    match &info.r#type {
        None => Ok(Type::Unknown),
        Some(proto) => read(proto, &info.name).map_err(|reason| format!("input `{}`: {reason}", info.name)),
    }
}

fn read(proto: &TypeProto, name: &str) -> Result<Type, String> {
    let inner = |proto: &ElementTypeProto| match &proto.elem_type {
        None => Ok(Type::Unknown),
        Some(proto) => read(proto, name),
    };
    match &proto.value {
        None => Ok(Type::Unknown),
        Some(type_proto::Value::SequenceType(proto)) => Ok(Type::Sequence(Box::new(inner(proto)?))),
        Some(type_proto::Value::OptionalType(proto)) => Ok(Type::Optional(Box::new(inner(proto)?))),
        Some(type_proto::Value::TensorType(tensor)) => {
            let unsupported =
                || format!("elements of type {} are not supported", element_type_name(tensor.elem_type));
            let element = match tensor.elem_type {
                0 => None,
                number => Some(element_type(number).ok_or_else(unsupported)?),
            };
            let shape = match &tensor.shape {
                None => Shape::Unknown,
                Some(shape) => {
                    let extent =
                        |(place, dim): (usize, &crate::onnx::schema::DimensionProto)| match &dim.value {
                            Some(dimension_proto::Value::DimValue(extent)) if *extent >= 0 => {
                                SymInt::from(*extent)
                            }
                            Some(dimension_proto::Value::DimParam(symbol))
                                if !symbol.is_empty() && symbol != "?" =>
                            {
                                SymInt::symbol(symbol)
                            }
                            _ => SymInt::symbol(&format!("{name}_{place}")),
                        };
                    Shape::Known(shape.dim.iter().enumerate().map(extent).collect())
                }
            };
            Ok(Type::Tensor(TensorType { element, shape }))
        }
    }
}

/// How a declaration contradicts a deduced type: another element type, another rank, or another constant extent.
pub(super) fn conflict(info: &ValueInfoProto, deduced: &Type) -> Option<String> {
    let declared = read(info.r#type.as_ref()?, &info.name).ok()?;
    let (Type::Tensor(file), Type::Tensor(own)) = (&declared, deduced) else { return None };
    let elements = matches!((file.element, own.element), (Some(file), Some(own)) if file != own);
    let shapes = match (file.shape.extents(), own.shape.extents()) {
        (Some(file), Some(own)) => {
            let differ = |(file, own): (&SymInt, &SymInt)| matches!((file.as_constant(), own.as_constant()), (Some(file), Some(own)) if file != own);
            file.len() != own.len() || file.iter().zip(own).any(differ)
        }
        _ => false,
    };
    (elements || shapes).then(|| format!("the file declares {declared}, the graph gives {deduced}"))
}

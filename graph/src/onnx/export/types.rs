//! Types as files declare them.

use crate::ir::{Shape, Type};
use crate::onnx::export::BASE;
use crate::onnx::schema::{
    DimensionProto, ElementTypeProto, TensorShapeProto, TensorTypeProto, TypeProto, ValueInfoProto,
    dimension_proto, type_proto,
};
use crate::onnx::tensor::element_number;
use crate::symbolic::SymInt;
use crate::tensor::ElementType;

/// Types of elements that came after [`BASE`](super::BASE), and the operator set that they came with.
const LATER: &[(ElementType, i64)] =
    &[(ElementType::F4E2M1, 23), (ElementType::F8E8M0, 24), (ElementType::I2, 25), (ElementType::U2, 25)];

/// The operator set that has the elements of a type.
pub(super) fn operator_set(ty: &Type) -> i64 {
    match ty {
        Type::Tensor(tensor) => {
            let later = LATER.iter().find(|(element, _)| Some(*element) == tensor.element);
            later.map_or(BASE, |(_, since)| *since)
        }
        Type::Sequence(element) | Type::Optional(element) => operator_set(element),
        Type::Tuple(elements) => elements.iter().map(operator_set).fold(BASE, i64::max),
        Type::Unknown => BASE,
    }
}

/// The declaration of a value, as far as its type is known.
pub(super) fn declared(name: &str, ty: &Type) -> ValueInfoProto {
    ValueInfoProto { name: name.to_owned(), r#type: write(ty) }
}

/// The declaration of a value of control flow, which needs none. One without a shape is not well-formed.
pub(super) fn declared_inside(name: &str, ty: &Type) -> ValueInfoProto {
    let whole = declared(name, ty);
    if has_shape(&whole) { whole } else { ValueInfoProto { r#type: None, ..whole } }
}

/// Whether a declaration says how many dimensions a tensor has. Nothing is asked of other values.
pub(super) fn has_shape(value: &ValueInfoProto) -> bool {
    match value.r#type.as_ref().and_then(|ty| ty.value.as_ref()) {
        Some(type_proto::Value::TensorType(tensor)) => tensor.shape.is_some(),
        Some(_) => true,
        None => false,
    }
}

fn write(ty: &Type) -> Option<TypeProto> {
    let inner = |ty: &Type| Box::new(ElementTypeProto { elem_type: write(ty).map(Box::new) });
    let value = match ty {
        Type::Tensor(tensor) => {
            let shape = match &tensor.shape {
                Shape::Unknown => None,
                Shape::Known(extents) => {
                    Some(TensorShapeProto { dim: extents.iter().map(dimension).collect() })
                }
            };
            let elem_type = tensor.element.map_or(0, element_number);
            type_proto::Value::TensorType(TensorTypeProto { elem_type, shape })
        }
        Type::Sequence(element) => type_proto::Value::SequenceType(inner(element)),
        Type::Optional(element) => type_proto::Value::OptionalType(inner(element)),
        Type::Tuple(_) | Type::Unknown => return None,
    };
    Some(TypeProto { value: Some(value) })
}

/// An extent: a number, a name, or nothing where it is computed from names.
fn dimension(extent: &SymInt) -> DimensionProto {
    let number = extent.as_constant().map(dimension_proto::Value::DimValue);
    let name = || Some(dimension_proto::Value::DimParam(extent.as_symbol()?.name().to_owned()));
    DimensionProto { value: number.or_else(name) }
}

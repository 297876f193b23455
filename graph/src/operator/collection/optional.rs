//! Values that may be nothing.

use crate::operator::evaluate::{one, refuse};
use crate::operator::{Operator, Value};
use crate::tensor::HostTensor;

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("optional", "Optional", |a| {
        Ok(vec![Value::Optional(a.value(0).map(|value| Box::new(value.clone())))])
    })
    .inputs(0, 1),
    Operator::new("optional_has_element", "OptionalHasElement", |a| {
        one(HostTensor::scalar(!matches!(a.value(0), None | Some(Value::Optional(None)))))
    })
    .inputs(0, 1),
    Operator::new("optional_get_element", "OptionalGetElement", |a| match a.value(0) {
        Some(Value::Optional(Some(value))) => Ok(vec![(**value).clone()]),
        Some(Value::Optional(None)) | None => refuse!("the optional value is empty"),
        Some(value) => Ok(vec![value.clone()]),
    }),
];

//! Arguments of a call while it is evaluated.

use std::sync::Arc;

use crate::ir::{Attribute, AttributeKind, Attributes};
use crate::operator::Operator;
use crate::tensor::{CastError, Element, ElementType, HostTensor, TensorError};

/// A value at run time.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A tensor.
    Tensor(HostTensor),
    /// Several values.
    Tuple(Vec<Value>),
    /// Any number of values of one type.
    Sequence(Vec<Value>),
    /// A value or nothing.
    Optional(Option<Box<Value>>),
}

impl Value {
    /// The tensor, if this is one.
    pub fn as_tensor(&self) -> Option<&HostTensor> {
        match self {
            Value::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }
}

impl From<HostTensor> for Value {
    fn from(tensor: HostTensor) -> Self {
        Value::Tensor(tensor)
    }
}

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Fault(pub String);

impl From<TensorError> for Fault {
    fn from(error: TensorError) -> Self {
        Fault(error.to_string())
    }
}

impl From<CastError> for Fault {
    fn from(error: CastError) -> Self {
        Fault(error.to_string())
    }
}

/// Leaves the function with a [`Fault`].
macro_rules! refuse {
    ($($message:tt)*) => {
        return Err($crate::operator::Fault(format!($($message)*)))
    };
}
pub(crate) use refuse;

/// The arguments of a call that is evaluated. Attributes that are not given have the defaults of the table.
#[derive(Clone, Copy)]
pub struct Arguments<'a> {
    /// The operator.
    pub operator: &'static Operator,
    /// The attributes.
    pub attributes: &'a Attributes,
    /// The inputs.
    pub inputs: &'a [Option<Value>],
    /// How many outputs are wanted.
    pub outputs: usize,
}

impl<'a> Arguments<'a> {
    /// An input of any type, if it is given.
    pub fn value(&self, place: usize) -> Option<&'a Value> {
        self.inputs.get(place).and_then(Option::as_ref)
    }

    /// A tensor, if it is given.
    ///
    /// # Errors
    /// When the input is no tensor.
    pub fn optional(&self, place: usize) -> Result<Option<&'a HostTensor>, Fault> {
        match self.value(place) {
            None => Ok(None),
            Some(Value::Tensor(tensor)) => Ok(Some(tensor)),
            Some(_) => refuse!("input {place} must be a tensor"),
        }
    }

    /// A tensor.
    ///
    /// # Errors
    /// When the input is missing or no tensor.
    pub fn tensor(&self, place: usize) -> Result<&'a HostTensor, Fault> {
        self.optional(place)?.ok_or_else(|| Fault(format!("input {place} is missing")))
    }

    /// All inputs as tensors.
    ///
    /// # Errors
    /// When one is missing or no tensor.
    pub fn tensors(&self) -> Result<Vec<&'a HostTensor>, Fault> {
        (0..self.inputs.len()).map(|place| self.tensor(place)).collect()
    }

    /// The elements of an input.
    ///
    /// # Errors
    /// When the input is missing or of another type.
    pub fn slice<T: Element>(&self, place: usize) -> Result<&'a [T], Fault> {
        let tensor = self.tensor(place)?;
        tensor.expect().map_err(|error| Fault(format!("input {place}: {error}")))
    }

    /// The elements of an input of integers or numbers, as integers, if it is given.
    ///
    /// # Errors
    /// When it is no tensor of such.
    pub fn optional_integers(&self, place: usize) -> Result<Option<Vec<i64>>, Fault> {
        let Some(tensor) = self.optional(place)? else { return Ok(None) };
        let cast = tensor.cast(ElementType::I64).map_err(|error| Fault(format!("input {place}: {error}")))?;
        Ok(Some(cast.expect::<i64>()?.to_vec()))
    }

    /// The elements of an input as integers.
    ///
    /// # Errors
    /// As [`Arguments::optional_integers`], and when it is missing.
    pub fn integers(&self, place: usize) -> Result<Vec<i64>, Fault> {
        self.optional_integers(place)?.ok_or_else(|| Fault(format!("input {place} is missing")))
    }

    /// The only element of an input as an integer, if it is given.
    ///
    /// # Errors
    /// When it has not exactly one element.
    pub fn optional_integer(&self, place: usize) -> Result<Option<i64>, Fault> {
        match self.optional_integers(place)?.as_deref() {
            None => Ok(None),
            Some(&[value]) => Ok(Some(value)),
            Some(values) => refuse!("input {place} must have one element, it has {}", values.len()),
        }
    }

    /// The elements of an input as numbers, if it is given.
    ///
    /// # Errors
    /// When it is no tensor of numbers.
    pub fn optional_numbers(&self, place: usize) -> Result<Option<Vec<f64>>, Fault> {
        let Some(tensor) = self.optional(place)? else { return Ok(None) };
        let cast = tensor.cast(ElementType::F64).map_err(|error| Fault(format!("input {place}: {error}")))?;
        Ok(Some(cast.expect::<f64>()?.to_vec()))
    }

    /// An attribute that is an integer, with the default of the table.
    ///
    /// # Panics
    /// When the table has no such attribute.
    pub fn int(&self, name: &str) -> Option<i64> {
        match (self.attributes.get(name), self.kind(name)) {
            (Some(Attribute::Int(value)), _) => Some(*value),
            (_, AttributeKind::IntOr(value)) => Some(value),
            _ => None,
        }
    }

    /// An attribute that is an integer with a default.
    ///
    /// # Panics
    /// When the table gives no default.
    pub fn int_or_default(&self, name: &str) -> i64 {
        self.int(name).expect("the table has a default for this attribute")
    }

    /// An attribute that is a truth value, false unless the table says otherwise.
    ///
    /// # Panics
    /// When the table has no such attribute.
    pub fn flag(&self, name: &str) -> bool {
        self.int(name).is_some_and(|value| value != 0)
    }

    /// An attribute that is a number, with the default of the table.
    ///
    /// # Panics
    /// When the table has no such attribute.
    pub fn float(&self, name: &str) -> Option<f64> {
        match (self.attributes.get(name), self.kind(name)) {
            (Some(Attribute::Float(value)), _) => Some(f64::from(*value)),
            (_, AttributeKind::FloatOr(value)) => Some(f64::from(value)),
            _ => None,
        }
    }

    /// An attribute that is a number with a default.
    ///
    /// # Panics
    /// When the table gives no default.
    pub fn float_or_default(&self, name: &str) -> f64 {
        self.float(name).expect("the table has a default for this attribute")
    }

    /// An attribute that is a word, with the default of the table.
    ///
    /// # Panics
    /// When the table has no such attribute or no default for it.
    pub fn text(&self, name: &str) -> &'a str {
        match (self.attributes.get(name), self.kind(name)) {
            (Some(Attribute::Text(value)), _) => value,
            (_, AttributeKind::TextOr(value)) => value,
            _ => panic!("the table has a default for the attribute {name}"),
        }
    }

    /// An attribute that is a list of integers, if it is given.
    pub fn ints(&self, name: &str) -> Option<&'a [i64]> {
        match self.attributes.get(name) {
            Some(Attribute::Ints(values)) => Some(values),
            _ => None,
        }
    }

    /// An attribute that is a list of numbers, if it is given.
    pub fn floats(&self, name: &str) -> Option<&'a [f32]> {
        match self.attributes.get(name) {
            Some(Attribute::Floats(values)) => Some(values),
            _ => None,
        }
    }

    /// An attribute that is a list of words, if it is given.
    pub fn texts(&self, name: &str) -> Option<&'a [Arc<str>]> {
        match self.attributes.get(name) {
            Some(Attribute::Texts(values)) => Some(values),
            _ => None,
        }
    }

    /// An attribute that is a tensor, if it is given.
    pub fn tensor_attribute(&self, name: &str) -> Option<&'a HostTensor> {
        match self.attributes.get(name) {
            Some(Attribute::Tensor(value)) => Some(value),
            _ => None,
        }
    }

    /// An attribute that is an element type, if it is given.
    pub fn element(&self, name: &str) -> Option<ElementType> {
        match self.attributes.get(name) {
            Some(Attribute::Element(value)) => Some(*value),
            _ => None,
        }
    }

    fn kind(&self, name: &str) -> AttributeKind {
        self.operator.attribute(name).expect("the table has every attribute that an evaluation reads")
    }
}

/// The elements of a tensor of numbers.
pub(super) fn numbers(tensor: &HostTensor) -> Result<Vec<f64>, Fault> {
    Ok(tensor.cast(ElementType::F64)?.expect::<f64>()?.to_vec())
}

/// One tensor as the outputs of a call.
pub(crate) fn one(tensor: HostTensor) -> Result<Vec<Value>, Fault> {
    Ok(vec![tensor.into()])
}

/// A dimension from a number that may count from the last, if there is such a dimension.
///
/// # Errors
/// When there is none.
pub(crate) fn axis(number: i64, rank: usize) -> Result<usize, Fault> {
    let signed = rank as i64;
    if number < -signed || number >= signed {
        refuse!("axis {number} is outside a tensor of rank {rank}");
    }
    Ok(if number < 0 { number + signed } else { number } as usize)
}

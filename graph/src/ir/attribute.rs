//! Attributes: what is fixed about a call when the graph is built.

use std::fmt;
use std::sync::Arc;

use crate::tensor::{ElementType, HostTensor};

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    /// An integer, or a truth value as 0 or 1.
    Int(i64),
    /// A number.
    Float(f32),
    /// A word, mostly one of a few.
    Text(Arc<str>),
    /// Integers.
    Ints(Vec<i64>),
    /// Numbers.
    Floats(Vec<f32>),
    /// Words.
    Texts(Vec<Arc<str>>),
    /// A tensor.
    Tensor(HostTensor),
    /// An element type.
    Element(ElementType),
}

/// The kind of value of an attribute, and its value where a call gives none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AttributeKind {
    /// An integer that may be left out without a default.
    Int,
    /// An integer with a default.
    IntOr(i64),
    /// A number with a default.
    FloatOr(f32),
    /// A number that may be left out without a default.
    Float,
    /// A word with a default.
    TextOr(&'static str),
    /// Integers; left out, their meaning is the operator's affair.
    Ints,
    /// Numbers; left out, their meaning is the operator's affair.
    Floats,
    /// Words; left out, their meaning is the operator's affair.
    Texts,
    /// A tensor that may be left out.
    Tensor,
    /// An element type that may be left out.
    Element,
}

impl AttributeKind {
    /// Whether a value is of this kind.
    pub fn accepts(self, value: &Attribute) -> bool {
        matches!(
            (self, value),
            (AttributeKind::Int | AttributeKind::IntOr(_), Attribute::Int(_))
                | (AttributeKind::Float | AttributeKind::FloatOr(_), Attribute::Float(_))
                | (AttributeKind::TextOr(_), Attribute::Text(_))
                | (AttributeKind::Ints, Attribute::Ints(_))
                | (AttributeKind::Floats, Attribute::Floats(_))
                | (AttributeKind::Texts, Attribute::Texts(_))
                | (AttributeKind::Tensor, Attribute::Tensor(_))
                | (AttributeKind::Element, Attribute::Element(_))
        )
    }
}

impl fmt::Display for AttributeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AttributeKind::Int | AttributeKind::IntOr(_) => "an integer",
            AttributeKind::Float | AttributeKind::FloatOr(_) => "a number",
            AttributeKind::TextOr(_) => "a word",
            AttributeKind::Ints => "integers",
            AttributeKind::Floats => "numbers",
            AttributeKind::Texts => "words",
            AttributeKind::Tensor => "a tensor",
            AttributeKind::Element => "an element type",
        })
    }
}

/// The attributes of one call, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attributes(Vec<(Arc<str>, Attribute)>);

impl Attributes {
    /// No attributes.
    pub fn none() -> Self {
        Attributes::default()
    }

    /// The value of an attribute, if it is given.
    pub fn get(&self, name: &str) -> Option<&Attribute> {
        self.0.iter().find(|(given, _)| &**given == name).map(|(_, value)| value)
    }

    /// Sets an attribute. Names stay sorted.
    pub fn set(&mut self, name: &str, value: Attribute) {
        match self.0.binary_search_by(|(given, _)| (**given).cmp(name)) {
            Ok(place) => self.0[place].1 = value,
            Err(place) => self.0.insert(place, (name.into(), value)),
        }
    }

    /// Removes an attribute and gives its value.
    pub fn take(&mut self, name: &str) -> Option<Attribute> {
        let place = self.0.iter().position(|(given, _)| &**given == name)?;
        Some(self.0.remove(place).1)
    }

    /// The same attributes and one more.
    #[must_use]
    pub fn with(mut self, name: &str, value: Attribute) -> Self {
        self.set(name, value);
        self
    }

    /// All attributes, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Attribute)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }
}

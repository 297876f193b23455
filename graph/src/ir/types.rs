//! The types of values, as far as they are known before anything is computed.

use std::fmt;

use crate::symbolic::SymInt;
use crate::tensor::ElementType;

/// The type of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// A tensor.
    Tensor(TensorType),
    /// Several values.
    Tuple(Vec<Type>),
    /// Any number of values of one type.
    Sequence(Box<Type>),
    /// A value or nothing.
    Optional(Box<Type>),
    /// Nothing is known.
    Unknown,
}

/// The type of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorType {
    /// The type of the elements, if it is known.
    pub element: Option<ElementType>,
    /// The shape.
    pub shape: Shape,
}

/// A shape, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Every extent is an expression of sizes; sizes that data decide are symbols of their own.
    Known(Vec<SymInt>),
    /// Not even the rank is known.
    Unknown,
}

impl Type {
    /// A tensor type.
    pub fn tensor(element: ElementType, shape: Shape) -> Self {
        Type::Tensor(TensorType { element: Some(element), shape })
    }

    /// The type of a tensor with fixed extents.
    pub fn fixed(element: ElementType, shape: &[usize]) -> Self {
        Type::tensor(element, Shape::fixed(shape))
    }

    /// The tensor type, if this is one.
    pub fn as_tensor(&self) -> Option<&TensorType> {
        match self {
            Type::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// The element type of a tensor, if it is known.
    pub fn element(&self) -> Option<ElementType> {
        self.as_tensor().and_then(|tensor| tensor.element)
    }

    /// The extents of a tensor, if its rank is known.
    pub fn extents(&self) -> Option<&[SymInt]> {
        self.as_tensor().and_then(|tensor| tensor.shape.extents())
    }
}

impl Shape {
    /// A shape of constants.
    pub fn fixed(shape: &[usize]) -> Self {
        Shape::Known(shape.iter().map(|&extent| extent.into()).collect())
    }

    /// The extents, if the rank is known.
    pub fn extents(&self) -> Option<&[SymInt]> {
        match self {
            Shape::Known(extents) => Some(extents),
            Shape::Unknown => None,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Tensor(tensor) => write!(f, "{tensor}"),
            Type::Tuple(types) => {
                f.write_str("(")?;
                for (place, part) in types.iter().enumerate() {
                    write!(f, "{}{part}", if place > 0 { ", " } else { "" })?;
                }
                f.write_str(")")
            }
            Type::Sequence(inner) => write!(f, "sequence<{inner}>"),
            Type::Optional(inner) => write!(f, "optional<{inner}>"),
            Type::Unknown => f.write_str("unknown"),
        }
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.element {
            Some(element) => write!(f, "{element}")?,
            None => f.write_str("any")?,
        }
        write!(f, "{}", self.shape)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shape::Unknown => f.write_str("[..]"),
            Shape::Known(extents) => {
                f.write_str("[")?;
                for (place, extent) in extents.iter().enumerate() {
                    write!(f, "{}{extent}", if place > 0 { ", " } else { "" })?;
                }
                f.write_str("]")
            }
        }
    }
}

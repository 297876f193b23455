//! The columns of the tables of operators.

use crate::DType;

/// The element types that an operator takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operands {
    /// Every type that programs compute with.
    Any,
    /// Integers and floats.
    Numbers,
    /// Floats.
    Floats,
    /// Integers.
    Integers,
    /// `bool` and integers.
    Bits,
}

impl Operands {
    /// Whether the operator takes a type.
    pub const fn accept(self, dtype: DType) -> bool {
        if dtype.is_storage_only() {
            return false;
        }
        match self {
            Operands::Any => true,
            Operands::Numbers => dtype.is_float() || dtype.is_int(),
            Operands::Floats => dtype.is_float(),
            Operands::Integers => dtype.is_int(),
            Operands::Bits => matches!(dtype, DType::Bool) || dtype.is_int(),
        }
    }

    /// The types, for messages.
    pub const fn describe(self) -> &'static str {
        match self {
            Operands::Any => "a type that programs compute with",
            Operands::Numbers => "numbers",
            Operands::Floats => "floats",
            Operands::Integers => "integers",
            Operands::Bits => "bools or integers",
        }
    }
}

/// The cost of an operator on floats, in units of its kind. On integers everything but a division costs one simple
/// operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Additions, multiplications and the like.
    Simple,
    /// Comparisons, minima and maxima.
    Comparison,
    /// This number of divisions or square roots.
    Division(u8),
    /// As much as this number of exponentials.
    Transcendental(u8),
}

impl Cost {
    /// Whether the operator takes many times longer than a load from a cache.
    pub const fn is_expensive(self) -> bool {
        matches!(self, Cost::Division(_) | Cost::Transcendental(_))
    }
}

/// The greatest error of a function, in units in the last place of the exact result. `f16` and `bf16` are computed in
/// `f32` and rounded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorBound {
    /// In `f32`.
    pub single: f64,
    /// In `f64`.
    pub double: f64,
}

//! Classes of element types: the bounds of generic kernels.
//!
//! | class | types |
//! |---|---|
//! | [`Element`] | all |
//! | [`Number`] | all but `bool` |
//! | [`Bits`] | `bool` and integers |
//! | [`Integer`] | integers |
//! | [`Float`] | `f16`, `bf16`, `f32` and `f64` |
//!
//! The arithmetic of the types is that of [`scalar`]. It stands in traits of its own, so that an import of a class brings
//! no method such as `min` into scope.

use half::{bf16, f16};

use crate::math::scalar;
use crate::tensor::Element;

/// Integers and floats.
pub trait Number: Element + scalar::Number {
    /// The least finite number.
    const MIN: Self;
    /// The greatest finite number.
    const MAX: Self;
}

/// `bool` and integers.
pub trait Bits: Element + scalar::Bits {}

/// Integers.
pub trait Integer: Number + Bits + scalar::Integer {}

/// Floats.
pub trait Float: Number + scalar::Real + scalar::Cast {
    /// Infinity.
    const INFINITY: Self;
    /// Minus infinity: no number is less.
    const NEG_INFINITY: Self;
    /// Not a number.
    const NAN: Self;
    /// The distance from 1 to the next number above.
    const EPSILON: Self;
    /// The least positive normal number.
    const MIN_POSITIVE: Self;
}

macro_rules! integers {
    ($($type:ident)*) => {$(
        impl Number for $type {
            const MIN: Self = $type::MIN;
            const MAX: Self = $type::MAX;
        }
        impl Bits for $type {}
        impl Integer for $type {}
    )*};
}

macro_rules! floats {
    ($($type:ident)*) => {$(
        impl Number for $type {
            const MIN: Self = $type::MIN;
            const MAX: Self = $type::MAX;
        }
        impl Float for $type {
            const INFINITY: Self = $type::INFINITY;
            const NEG_INFINITY: Self = $type::NEG_INFINITY;
            const NAN: Self = $type::NAN;
            const EPSILON: Self = $type::EPSILON;
            const MIN_POSITIVE: Self = $type::MIN_POSITIVE;
        }
    )*};
}

impl Bits for bool {}
integers!(i8 u8 i16 u16 i32 u32 i64 u64);
floats!(f16 bf16 f32 f64);

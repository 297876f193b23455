//! Arithmetic on elements, as the reference evaluation of operators needs it.

use half::{bf16, f16};

use crate::tensor::Element;

/// The type in which sums and products of elements are formed before the result is rounded once: `f64` for floats, so
/// that the reference is more exact than the kernels that it judges; `i64` with wraparound for integers.
pub trait Wide: Copy + PartialOrd + Default {
    /// The sum.
    fn plus(self, other: Self) -> Self;
    /// The difference.
    fn minus(self, other: Self) -> Self;
    /// The product.
    fn times(self, other: Self) -> Self;
    /// The number 1.
    fn unit() -> Self;
    /// The value as a number, rounded to nearest.
    fn approximate(self) -> f64;
}

impl Wide for f64 {
    fn plus(self, other: Self) -> Self {
        self + other
    }
    fn minus(self, other: Self) -> Self {
        self - other
    }
    fn times(self, other: Self) -> Self {
        self * other
    }
    fn unit() -> Self {
        1.0
    }
    fn approximate(self) -> f64 {
        self
    }
}

impl Wide for i64 {
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
    fn minus(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }
    fn times(self, other: Self) -> Self {
        self.wrapping_mul(other)
    }
    fn unit() -> Self {
        1
    }
    fn approximate(self) -> f64 {
        self as f64
    }
}

/// An element that is a number.
pub trait Number: Element + Copy {
    /// The type in which sums and products are formed.
    type Wide: Wide;

    /// Whether this is a floating-point type.
    const IS_FLOAT: bool;

    /// The value in the wide type. Values of `u64` beyond 2⁶³ wrap.
    fn widen(self) -> Self::Wide;

    /// Rounds to nearest (floats) or wraps around (integers).
    fn narrow(wide: Self::Wide) -> Self;

    /// The value as `f64`: exact but for integers beyond 2⁵³.
    fn to_f64(self) -> f64;

    /// The nearest value of this type: rounded to nearest for floats; truncated and saturated for integers.
    fn from_f64(value: f64) -> Self;

    /// The value as an integer: wrapped for `u64`, truncated and saturated for floats.
    fn to_integer(self) -> i64;

    /// An integer as this type: wrapped for integers, rounded to nearest for floats.
    fn from_integer(value: i64) -> Self;

    /// The quotient: truncated for integers, of which division by zero is `None`.
    fn divide(self, other: Self) -> Option<Self>;

    /// The remainder, with the sign of the dividend as in C. `None` for integers modulo zero.
    fn remainder(self, other: Self) -> Option<Self>;

    /// Whether this is no number.
    fn is_nan(self) -> bool {
        false
    }

    /// The smallest value: minus infinity for floats.
    fn lowest() -> Self;

    /// The largest value: infinity for floats.
    fn highest() -> Self;

    /// The number 1.
    fn one() -> Self {
        Self::narrow(Self::Wide::unit())
    }

    /// The sum.
    fn add(self, other: Self) -> Self {
        Self::narrow(self.widen().plus(other.widen()))
    }

    /// The difference.
    fn subtract(self, other: Self) -> Self {
        Self::narrow(self.widen().minus(other.widen()))
    }

    /// The product.
    fn multiply(self, other: Self) -> Self {
        Self::narrow(self.widen().times(other.widen()))
    }

    /// The smaller of both; not a number if one of them is.
    fn smaller(self, other: Self) -> Self {
        if self.is_nan() || self < other { self } else { other }
    }

    /// The larger of both; not a number if one of them is.
    fn larger(self, other: Self) -> Self {
        if self.is_nan() || self > other { self } else { other }
    }
}

/// An element that is a floating-point number. Functions are computed in `f64` and rounded once.
pub trait Float: Number<Wide = f64> {}

macro_rules! integer {
    ($($type:ty),*) => {$(
        impl Number for $type {
            type Wide = i64;
            const IS_FLOAT: bool = false;

            fn widen(self) -> i64 {
                self as i64
            }
            fn narrow(wide: i64) -> Self {
                wide as $type
            }
            fn to_f64(self) -> f64 {
                self as f64
            }
            fn from_f64(value: f64) -> Self {
                value as $type
            }
            fn to_integer(self) -> i64 {
                self as i64
            }
            fn from_integer(value: i64) -> Self {
                value as $type
            }
            fn divide(self, other: Self) -> Option<Self> {
                (other != 0).then(|| self.wrapping_div(other))
            }
            fn remainder(self, other: Self) -> Option<Self> {
                (other != 0).then(|| self.wrapping_rem(other))
            }
            fn lowest() -> Self {
                <$type>::MIN
            }
            fn highest() -> Self {
                <$type>::MAX
            }
        }
    )*};
}

macro_rules! float {
    ($($type:ty: $from:expr),* $(,)?) => {$(
        impl Number for $type {
            type Wide = f64;
            const IS_FLOAT: bool = true;

            fn widen(self) -> f64 {
                f64::from(self)
            }
            fn narrow(wide: f64) -> Self {
                $from(wide)
            }
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            fn from_f64(value: f64) -> Self {
                $from(value)
            }
            fn to_integer(self) -> i64 {
                f64::from(self) as i64
            }
            fn from_integer(value: i64) -> Self {
                $from(value as f64)
            }
            fn divide(self, other: Self) -> Option<Self> {
                Some($from(f64::from(self) / f64::from(other)))
            }
            fn remainder(self, other: Self) -> Option<Self> {
                Some($from(f64::from(self) % f64::from(other)))
            }
            fn is_nan(self) -> bool {
                <$type>::is_nan(self)
            }
            fn lowest() -> Self {
                <$type>::NEG_INFINITY
            }
            fn highest() -> Self {
                <$type>::INFINITY
            }
        }

        impl Float for $type {}
    )*};
}

integer!(i8, i16, i32, i64, u8, u16, u32, u64);
float! {
    f16: f16::from_f64,
    bf16: bf16::from_f64,
    f32: |value| value as f32,
    f64: |value| value,
}

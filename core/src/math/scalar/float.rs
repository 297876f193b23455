//! Floating-point numbers.

use half::{bf16, f16};

use super::{Cast, Number, Real, Wide};

macro_rules! float_scalar {
    ($($type:ident, $wide:ident;)*) => {$(
        impl Number for $type {
            #[inline]
            fn add(self, other: Self) -> Self { self + other }
            #[inline]
            fn sub(self, other: Self) -> Self { self - other }
            #[inline]
            fn mul(self, other: Self) -> Self { self * other }
            #[inline]
            fn div(self, other: Self) -> Self { self / other }
            #[inline]
            fn rem(self, other: Self) -> Self { self % other }
            #[inline]
            fn neg(self) -> Self { -self }
            #[inline]
            fn abs(self) -> Self { $type::abs(self) }
            #[inline]
            fn min(self, other: Self) -> Self {
                if self < other || other.is_nan() { self } else { other }
            }
            #[inline]
            fn max(self, other: Self) -> Self {
                if self > other || other.is_nan() { self } else { other }
            }
            #[inline]
            fn mul_add(self, factor: Self, addend: Self) -> Self { $type::mul_add(self, factor, addend) }
        }

        impl Real for $type {
            type Wide = $type;

            #[inline]
            fn to_wide(self) -> $type { self }
            #[inline]
            fn from_wide(wide: $type) -> Self { wide }
            #[inline]
            fn minimum(self, other: Self) -> Self {
                let is_first = self < other || self.is_nan() || (self == other && self.is_sign_negative());
                if is_first { self } else { other }
            }
            #[inline]
            fn maximum(self, other: Self) -> Self {
                let is_first = self > other || self.is_nan() || (self == other && self.is_sign_positive());
                if is_first { self } else { other }
            }
            #[inline]
            fn sqrt(self) -> Self { $type::sqrt(self) }
            #[inline]
            fn floor(self) -> Self { $type::floor(self) }
            #[inline]
            fn ceil(self) -> Self { $type::ceil(self) }
            #[inline]
            fn round(self) -> Self { $type::round(self) }
            #[inline]
            fn round_ties_even(self) -> Self { $type::round_ties_even(self) }
            #[inline]
            fn trunc(self) -> Self { $type::trunc(self) }
        }

        impl Cast for $type {
            #[inline]
            fn widen(self) -> Wide { Wide::$wide(self) }
            #[inline]
            fn narrow(wide: Wide) -> Self {
                match wide {
                    Wide::Int(value) => value as $type,
                    Wide::Unsigned(value) => value as $type,
                    Wide::Single(value) => value as $type,
                    Wide::Double(value) => value as $type,
                }
            }
        }
    )*};
}

float_scalar! {
    f32, Single;
    f64, Double;
}

/// The methods of a trait for a 16-bit type, computed in `f32`.
macro_rules! through_single {
    ($type:ident: $bound:ident { $($name:ident($($argument:ident),*)),* $(,)? }) => {$(
        #[inline]
        fn $name(self $(, $argument: Self)*) -> Self {
            $type::from_f32($bound::$name(self.to_f32() $(, $argument.to_f32())*))
        }
    )*};
}

macro_rules! half_scalar {
    ($($type:ident)*) => {$(
        impl Number for $type {
            through_single!($type: Number {
                add(other), sub(other), mul(other), div(other), rem(other), neg(), abs(), min(other), max(other),
                mul_add(factor, addend),
            });
        }

        impl Real for $type {
            type Wide = f32;

            #[inline]
            fn to_wide(self) -> f32 { self.to_f32() }
            #[inline]
            fn from_wide(wide: f32) -> Self { $type::from_f32(wide) }

            through_single!($type: Real {
                minimum(other), maximum(other), sqrt(), floor(), ceil(), round(), round_ties_even(), trunc(),
            });
        }

        impl Cast for $type {
            #[inline]
            fn widen(self) -> Wide { Wide::Single(self.to_f32()) }
            #[inline]
            fn narrow(wide: Wide) -> Self { $type::from_f32(f32::narrow(wide)) }
        }
    )*};
}

half_scalar!(f16 bf16);

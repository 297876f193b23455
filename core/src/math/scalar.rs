//! What each operator of the intermediate representation does to one element.
//!
//! The traits are the meaning of [`UnaryOp`](crate::expr::UnaryOp), [`BinaryOp`](crate::expr::BinaryOp) and casts
//! for each [`Element`] type; the free functions are the same for generated code to call. The
//! interpreter executes these, hence a definition's reference and the interpreter agree bit for bit.
//!
//! | operator | meaning |
//! |---|---|
//! | `+ - *`, negation, absolute value | integers wrap |
//! | `/`, `%` | truncated, 0 when the divisor is 0, wrapping for the least integer by -1 |
//! | `<<`, `>>` | the count is taken modulo the width; `>>` keeps the sign of signed types |
//! | `min`, `max` | a NaN operand is ignored when the other is a number; of equal operands (±0) the second |
//! | casts | Rust's `as`; to and from `f16` and `bf16` through `f32`; to `bool`: not zero |
//! | `f16`, `bf16` | each operation in `f32`, then rounded; `mul_add` is rounded to `f32` and then again |

use half::{bf16, f16};

use crate::tensor::Element;

/// Integers and floating-point numbers.
pub trait Number: Element {
    /// `self + other`
    fn add(self, other: Self) -> Self;
    /// `self - other`
    fn sub(self, other: Self) -> Self;
    /// `self * other`
    fn mul(self, other: Self) -> Self;
    /// `self / other`
    fn div(self, other: Self) -> Self;
    /// `self % other`, with the sign of `self`
    fn rem(self, other: Self) -> Self;
    /// `-self`
    fn neg(self) -> Self;
    /// The magnitude.
    fn abs(self) -> Self;
    /// The smaller.
    fn min(self, other: Self) -> Self;
    /// The larger.
    fn max(self, other: Self) -> Self;
    /// `self * factor + addend`: rounded once for `f32` and `f64`.
    fn mul_add(self, factor: Self, addend: Self) -> Self;
}

/// Truth values and integers.
pub trait Bits: Element {
    /// `self & other`
    fn and(self, other: Self) -> Self;
    /// `self | other`
    fn or(self, other: Self) -> Self;
    /// `self ^ other`
    fn xor(self, other: Self) -> Self;
    /// `!self`
    fn not(self) -> Self;
}

/// Integers.
pub trait Integer: Number + Bits {
    /// `self << count`
    fn shl(self, count: Self) -> Self;
    /// `self >> count`
    fn shr(self, count: Self) -> Self;
}

/// Floating-point numbers.
pub trait Real: Number {
    /// The square root.
    fn sqrt(self) -> Self;
    /// The reciprocal of the square root; see [`crate::math::rsqrt`].
    fn rsqrt(self) -> Self;
    /// The natural exponential; see [`crate::math::exp`].
    fn exp(self) -> Self;
    /// The natural logarithm; see [`crate::math::ln`].
    fn ln(self) -> Self;
    /// The hyperbolic tangent; see [`crate::math::tanh`].
    fn tanh(self) -> Self;
    /// The error function; see [`crate::math::erf`].
    fn erf(self) -> Self;
    /// The logistic function; see [`crate::math::sigmoid`].
    fn sigmoid(self) -> Self;
    /// The sine; see [`crate::math::sin`].
    fn sin(self) -> Self;
    /// The cosine; see [`crate::math::cos`].
    fn cos(self) -> Self;
    /// The largest integer not above.
    fn floor(self) -> Self;
    /// The smallest integer not below.
    fn ceil(self) -> Self;
    /// The nearest integer, ties away from zero.
    fn round(self) -> Self;
    /// The nearest integer, ties to even.
    fn round_ties_even(self) -> Self;
    /// The integer part.
    fn trunc(self) -> Self;
}

/// The type that a cast goes through.
#[derive(Clone, Copy, Debug)]
pub enum Wide {
    /// From truth values and integers.
    Int(i64),
    /// From `f16`, `bf16` and `f32`.
    Single(f32),
    /// From `f64`.
    Double(f64),
}

/// Elements that can be cast to one another, which is all of them.
pub trait Cast: Element {
    /// The element in a type that holds it exactly.
    fn widen(self) -> Wide;
    /// The element that a wider value becomes.
    fn narrow(wide: Wide) -> Self;
}

/// Conversion with the meaning of Rust's `as`, for all pairs of types.
#[inline]
pub fn cast<From: Cast, To: Cast>(value: From) -> To {
    To::narrow(value.widen())
}

/// `base` to an integer power, in the order of multiplications that [`crate::math::power`] states; the
/// reciprocal of the power for a negative exponent (0 for integers whose power is not ±1).
#[inline]
pub fn powi<T: Number + Cast>(base: T, exponent: i32) -> T {
    let one = T::narrow(Wide::Int(1));
    let power = crate::math::power(&base, exponent.unsigned_abs(), |a, b| a.mul(*b)).unwrap_or(one);
    if exponent < 0 { one.div(power) } else { power }
}

macro_rules! free_functions {
    ($($bound:ident { $($name:ident($($argument:ident),*)),* $(,)? })*) => {$($(
        #[doc = concat!("[`", stringify!($bound), "::", stringify!($name), "`] as a function.")]
        #[inline]
        pub fn $name<T: $bound>($($argument: T),*) -> T {
            $bound::$name($($argument),*)
        }
    )*)*};
}

free_functions! {
    Number {
        add(a, b), sub(a, b), mul(a, b), div(a, b), rem(a, b), neg(a), abs(a), min(a, b), max(a, b),
        mul_add(a, factor, addend),
    }
    Bits { and(a, b), or(a, b), xor(a, b), not(a) }
    Integer { shl(a, count), shr(a, count) }
    Real {
        sqrt(a), rsqrt(a), exp(a), ln(a), tanh(a), erf(a), sigmoid(a), sin(a), cos(a),
        floor(a), ceil(a), round(a), round_ties_even(a), trunc(a),
    }
}

macro_rules! integer_scalar {
    ($($type:ident $abs:expr;)*) => {$(
        impl Number for $type {
            #[inline]
            fn add(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline]
            fn sub(self, other: Self) -> Self { self.wrapping_sub(other) }
            #[inline]
            fn mul(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline]
            fn div(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_div(other) }
            }
            #[inline]
            fn rem(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_rem(other) }
            }
            #[inline]
            fn neg(self) -> Self { self.wrapping_neg() }
            #[inline]
            fn abs(self) -> Self { $abs(self) }
            #[inline]
            fn min(self, other: Self) -> Self { Ord::min(self, other) }
            #[inline]
            fn max(self, other: Self) -> Self { Ord::max(self, other) }
            #[inline]
            fn mul_add(self, factor: Self, addend: Self) -> Self {
                self.wrapping_mul(factor).wrapping_add(addend)
            }
        }

        impl Bits for $type {
            #[inline]
            fn and(self, other: Self) -> Self { self & other }
            #[inline]
            fn or(self, other: Self) -> Self { self | other }
            #[inline]
            fn xor(self, other: Self) -> Self { self ^ other }
            #[inline]
            fn not(self) -> Self { !self }
        }

        impl Integer for $type {
            #[inline]
            fn shl(self, count: Self) -> Self { self.wrapping_shl(count as u32) }
            #[inline]
            fn shr(self, count: Self) -> Self { self.wrapping_shr(count as u32) }
        }

        impl Cast for $type {
            #[inline]
            fn widen(self) -> Wide { Wide::Int(i64::from(self)) }
            #[inline]
            fn narrow(wide: Wide) -> Self {
                match wide {
                    Wide::Int(value) => value as $type,
                    Wide::Single(value) => value as $type,
                    Wide::Double(value) => value as $type,
                }
            }
        }
    )*};
}

integer_scalar! {
    i8 i8::wrapping_abs;
    u8 |value| value;
    i32 i32::wrapping_abs;
    i64 i64::wrapping_abs;
}

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
            #[inline]
            fn sqrt(self) -> Self { $type::sqrt(self) }
            #[inline]
            fn rsqrt(self) -> Self { crate::math::rsqrt(&self) }
            #[inline]
            fn exp(self) -> Self { crate::math::exp(&self) }
            #[inline]
            fn ln(self) -> Self { crate::math::ln(&self) }
            #[inline]
            fn tanh(self) -> Self { crate::math::tanh(&self) }
            #[inline]
            fn erf(self) -> Self { crate::math::erf(&self) }
            #[inline]
            fn sigmoid(self) -> Self { crate::math::sigmoid(&self) }
            #[inline]
            fn sin(self) -> Self { crate::math::sin(&self) }
            #[inline]
            fn cos(self) -> Self { crate::math::cos(&self) }
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

/// Implements a trait for a 16-bit type by computing in `f32`.
macro_rules! through_single {
    ($type:ident: $bound:ident { $($name:ident($($argument:ident),*)),* $(,)? }) => {
        impl $bound for $type {$(
            #[inline]
            fn $name(self $(, $argument: Self)*) -> Self {
                $type::from_f32($bound::$name(self.to_f32() $(, $argument.to_f32())*))
            }
        )*}
    };
}

macro_rules! half_scalar {
    ($($type:ident)*) => {$(
        through_single!($type: Number {
            add(other), sub(other), mul(other), div(other), rem(other), neg(), abs(), min(other), max(other),
            mul_add(factor, addend),
        });
        through_single!($type: Real {
            sqrt(), rsqrt(), exp(), ln(), tanh(), erf(), sigmoid(), sin(), cos(),
            floor(), ceil(), round(), round_ties_even(), trunc(),
        });

        impl Cast for $type {
            #[inline]
            fn widen(self) -> Wide { Wide::Single(self.to_f32()) }
            #[inline]
            fn narrow(wide: Wide) -> Self { $type::from_f32(f32::narrow(wide)) }
        }
    )*};
}

half_scalar!(f16 bf16);

impl Bits for bool {
    #[inline]
    fn and(self, other: Self) -> Self {
        self & other
    }
    #[inline]
    fn or(self, other: Self) -> Self {
        self | other
    }
    #[inline]
    fn xor(self, other: Self) -> Self {
        self ^ other
    }
    #[inline]
    fn not(self) -> Self {
        !self
    }
}

impl Cast for bool {
    #[inline]
    fn widen(self) -> Wide {
        Wide::Int(i64::from(self))
    }
    #[inline]
    fn narrow(wide: Wide) -> Self {
        match wide {
            Wide::Int(value) => value != 0,
            Wide::Single(value) => value != 0.0,
            Wide::Double(value) => value != 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_wrap_and_never_trap() {
        assert_eq!((add(127i8, 1), sub(0u8, 1), mul(i32::MAX, 2)), (-128, 255, -2));
        assert_eq!((div(7i32, 0), rem(7u8, 0), div(i64::MIN, -1), rem(i64::MIN, -1)), (0, 0, i64::MIN, 0));
        assert_eq!((div(-7i8, 2), rem(-7i8, 2), neg(i8::MIN), abs(i8::MIN)), (-3, -1, i8::MIN, i8::MIN));
        assert_eq!((neg(1u8), abs(200u8), mul_add(100i8, 2, 1)), (255, 200, -55));
    }

    #[test]
    fn shifts_take_the_count_modulo_the_width() {
        assert_eq!((shl(1i8, 9), shl(1i32, 33), shl(1i64, -1)), (2, 2, i64::MIN));
        assert_eq!((shr(-128i8, 1), shr(128u8, 1), shr(-1i32, 40)), (-64, 64, -1));
    }

    #[test]
    fn minimum_and_maximum_ignore_nan() {
        fn check<T: Real + Cast>() {
            let value = |v: f64| T::from_f64(v);
            let nan = value(f64::NAN);
            for (a, b, low, high) in
                [(1.0, 2.0, 1.0, 2.0), (f64::NAN, 3.0, 3.0, 3.0), (3.0, f64::NAN, 3.0, 3.0)]
            {
                assert_eq!(min(value(a), value(b)), value(low), "{} {a} {b}", T::DTYPE);
                assert_eq!(max(value(a), value(b)), value(high), "{} {a} {b}", T::DTYPE);
            }
            assert!(min(nan, nan).to_f64().is_nan() && max(nan, nan).to_f64().is_nan());
            assert!(min(value(-0.0), value(0.0)).to_f64().is_sign_positive());
            assert!(max(value(0.0), value(-0.0)).to_f64().is_sign_negative());
        }
        check::<f32>();
        check::<f64>();
        check::<f16>();
        check::<bf16>();
    }

    #[test]
    fn casts_saturate_from_floats_and_wrap_between_integers() {
        assert_eq!((cast::<f32, i8>(300.0), cast::<f32, u8>(-1.5), cast::<f64, i32>(f64::NAN)), (127, 0, 0));
        assert_eq!((cast::<i32, i8>(300), cast::<i8, u8>(-1), cast::<i64, i32>(1 << 32)), (44, 255, 0));
        assert_eq!(
            (cast::<bool, f32>(true), cast::<f32, bool>(0.5), cast::<i32, bool>(0)),
            (1.0, true, false)
        );
        assert_eq!(cast::<i64, f16>(100_000), f16::INFINITY);
        assert_eq!(cast::<f64, bf16>(1.003_906_25), bf16::ONE, "ties to even");
        assert_eq!(cast::<u8, f64>(255), 255.0);
        assert_eq!(cast::<i64, f32>(16_777_217), 16_777_216.0);
    }

    #[test]
    fn rounding_follows_its_name() {
        assert_eq!((round(2.5f32), round(-2.5f32), round_ties_even(2.5f32)), (3.0, -3.0, 2.0));
        assert_eq!((floor(-0.5f64), ceil(0.5f64), trunc(-1.7f64)), (-1.0, 1.0, -1.0));
        assert_eq!(round(f16::from_f32(0.5)), f16::ONE);
    }

    #[test]
    fn half_precision_rounds_after_each_operation() {
        let [big, one] = [2048.0, 1.0].map(f16::from_f32);
        assert_eq!(add(big, one), big);
        assert_eq!(mul_add(big, one, one), big);
    }

    #[test]
    fn powers_multiply_squares_from_the_lowest_digit() {
        assert_eq!((powi(3i32, 5), powi(2i32, 40), powi(7i8, 0)), (243, 0, 1));
        assert_eq!((powi(2.0f64, -2), powi(2i32, -1), powi(-1i32, -3), powi(0i32, -1)), (0.25, 0, -1, 0));
        let x = 1.1f32;
        assert_eq!(powi(x, 7), x * (x * x) * ((x * x) * (x * x)));
    }

    #[test]
    fn logic_works_on_bits() {
        assert_eq!(
            (and(true, false), or(true, false), xor(true, true), not(false)),
            (false, true, false, true)
        );
        assert_eq!((and(6u8, 3), or(6u8, 3), xor(6u8, 3), not(0i32)), (2, 7, 5, -1));
    }
}

//! Each operator of the intermediate representation, on one element.
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

mod float;
pub mod function;
mod integer;

pub use function::*;

use crate::math::Arithmetic;
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

/// `bool` and integers.
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
    /// The format that functions are computed in.
    type Wide: Arithmetic;

    /// The number in that format, exactly.
    fn to_wide(self) -> Self::Wide;
    /// A number of that format, rounded.
    fn from_wide(wide: Self::Wide) -> Self;

    /// The smaller; NaN where one is NaN, and −0 is smaller than +0.
    fn minimum(self, other: Self) -> Self;
    /// The larger; NaN where one is NaN, and +0 is larger than −0.
    fn maximum(self, other: Self) -> Self;
    /// The square root.
    fn sqrt(self) -> Self;
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
    /// From `bool` and integers but `u64`.
    Int(i64),
    /// From `u64`.
    Unsigned(u64),
    /// From `f16`, `bf16` and `f32`.
    Single(f32),
    /// From `f64`.
    Double(f64),
}

macro_rules! wide_from_integers {
    ($($type:ident)*) => {$(
        impl From<$type> for Wide {
            #[inline]
            fn from(value: $type) -> Self {
                Wide::Int(i64::from(value))
            }
        }
    )*};
}

wide_from_integers!(i8 u8 i16 u16 i32 u32 i64);

impl From<u64> for Wide {
    #[inline]
    fn from(value: u64) -> Self {
        Wide::Unsigned(value)
    }
}

/// Elements that can be cast to one another, which is all of them.
pub trait Cast: Copy {
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

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

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

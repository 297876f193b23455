//! The operations that the functions are made of.

use super::Precision;

/// A floating-point number, or something that stands for one (or for one per lane): the operations that
/// the functions of this module are made of. Each rounds once, to the number's own precision.
///
/// Integers have the number's width and wrap.
pub trait Arithmetic: Clone {
    /// The integer of the same width.
    type Int: Clone;
    /// The outcome of a comparison.
    type Mask: Clone;

    /// The format of the number.
    fn precision(&self) -> Precision;
    /// A constant of the number's format, rounded to it.
    fn constant(&self, value: f64) -> Self;
    /// An integer constant of the number's width.
    fn integer(&self, value: i64) -> Self::Int;

    /// The sum.
    fn add(&self, other: &Self) -> Self;
    /// The difference.
    fn sub(&self, other: &Self) -> Self;
    /// The product.
    fn mul(&self, other: &Self) -> Self;
    /// The quotient.
    fn div(&self, other: &Self) -> Self;
    /// `self · factor + addend`, rounded once.
    fn mul_add(&self, factor: &Self, addend: &Self) -> Self;
    /// The number with its sign flipped.
    fn neg(&self) -> Self;
    /// The number with its sign cleared.
    fn abs(&self) -> Self;
    /// The square root.
    fn sqrt(&self) -> Self;

    /// Whether the number is less than the other; false when either is NaN.
    fn less(&self, other: &Self) -> Self::Mask;
    /// Whether the number equals the other; false when either is NaN.
    fn equal(&self, other: &Self) -> Self::Mask;
    /// Whether an integer is zero.
    fn is_zero(integer: &Self::Int) -> Self::Mask;
    /// `then` where the mask holds, else `otherwise`. Both may be computed.
    fn select(mask: &Self::Mask, then: &Self, otherwise: &Self) -> Self;

    /// As [`Arithmetic::select`] for several values, of which scalars compute only what they choose.
    #[inline(always)]
    fn choose<const N: usize>(
        mask: &Self::Mask,
        then: impl FnOnce() -> [Self; N],
        otherwise: impl FnOnce() -> [Self; N],
    ) -> [Self; N] {
        let (then, otherwise) = (then(), otherwise());
        std::array::from_fn(|position| Self::select(mask, &then[position], &otherwise[position]))
    }

    /// The bits of the number.
    fn to_bits(&self) -> Self::Int;
    /// The number of some bits.
    fn from_bits(bits: &Self::Int) -> Self;
    /// The sum of integers.
    fn int_add(left: &Self::Int, right: &Self::Int) -> Self::Int;
    /// The difference of integers.
    fn int_sub(left: &Self::Int, right: &Self::Int) -> Self::Int;
    /// The bits set in both.
    fn int_and(left: &Self::Int, right: &Self::Int) -> Self::Int;
    /// The bits set in one and not the other.
    fn int_xor(left: &Self::Int, right: &Self::Int) -> Self::Int;
    /// The integer shifted left by `count` bits, less than its width.
    fn int_shl(integer: &Self::Int, count: u32) -> Self::Int;
    /// The integer shifted right by `count` bits, less than its width, keeping its sign.
    fn int_shr(integer: &Self::Int, count: u32) -> Self::Int;
}

/// The polynomial with the given coefficients, lowest power first, by Horner's rule.
#[inline]
pub(super) fn horner<A: Arithmetic>(x: &A, coefficients: &[f64]) -> A {
    let (highest, lower) = coefficients.split_last().expect("a polynomial has a coefficient");
    let start = x.constant(*highest);
    lower.iter().rev().fold(start, |sum, &coefficient| sum.mul_add(x, &x.constant(coefficient)))
}

/// The smaller of a number and a constant; keeps NaN.
#[inline]
pub(super) fn at_most<A: Arithmetic>(x: &A, limit: f64) -> A {
    let limit = x.constant(limit);
    A::select(&limit.less(x), &limit, x)
}

/// The magnitude of `x`, which must not be negative, with the sign of `sign`.
#[inline]
pub(super) fn with_sign<A: Arithmetic>(x: &A, sign: &A) -> A {
    A::from_bits(&A::int_xor(&x.to_bits(), &sign_of(sign)))
}

/// The larger of a number and a constant; keeps NaN.
#[inline]
pub(super) fn at_least<A: Arithmetic>(x: &A, limit: f64) -> A {
    let limit = x.constant(limit);
    A::select(&x.less(&limit), &limit, x)
}

/// The first value where a number is smaller in magnitude than a constant, otherwise the second.
#[inline]
pub(super) fn where_small<A: Arithmetic>(x: &A, limit: f64, small: &A, other: &A) -> A {
    A::select(&x.abs().less(&x.constant(limit)), small, other)
}

/// The bit of the sign.
#[inline]
pub(super) fn sign_of<A: Arithmetic>(x: &A) -> A::Int {
    A::int_and(&x.to_bits(), &x.integer(x.precision().sign_bit()))
}

macro_rules! machine_arithmetic {
    ($float:ident, $int:ident, $precision:ident) => {
        impl Arithmetic for $float {
            type Int = $int;
            type Mask = bool;

            #[inline(always)]
            fn precision(&self) -> Precision {
                Precision::$precision
            }
            #[inline(always)]
            fn constant(&self, value: f64) -> Self {
                value as $float
            }
            #[inline(always)]
            fn integer(&self, value: i64) -> $int {
                value as $int
            }
            #[inline(always)]
            fn add(&self, other: &Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn sub(&self, other: &Self) -> Self {
                self - other
            }
            #[inline(always)]
            fn mul(&self, other: &Self) -> Self {
                self * other
            }
            #[inline(always)]
            fn div(&self, other: &Self) -> Self {
                self / other
            }
            #[inline(always)]
            fn mul_add(&self, factor: &Self, addend: &Self) -> Self {
                $float::mul_add(*self, *factor, *addend)
            }
            #[inline(always)]
            fn neg(&self) -> Self {
                -self
            }
            #[inline(always)]
            fn abs(&self) -> Self {
                $float::abs(*self)
            }
            #[inline(always)]
            fn sqrt(&self) -> Self {
                $float::sqrt(*self)
            }
            #[inline(always)]
            fn less(&self, other: &Self) -> bool {
                self < other
            }
            #[inline(always)]
            fn equal(&self, other: &Self) -> bool {
                self == other
            }
            #[inline(always)]
            fn is_zero(integer: &$int) -> bool {
                *integer == 0
            }
            #[inline(always)]
            fn select(mask: &bool, then: &Self, otherwise: &Self) -> Self {
                if *mask { *then } else { *otherwise }
            }
            #[inline(always)]
            fn choose<const N: usize>(
                mask: &bool,
                then: impl FnOnce() -> [Self; N],
                otherwise: impl FnOnce() -> [Self; N],
            ) -> [Self; N] {
                if *mask { then() } else { otherwise() }
            }
            #[inline(always)]
            fn to_bits(&self) -> $int {
                $float::to_bits(*self) as $int
            }
            #[inline(always)]
            fn from_bits(bits: &$int) -> Self {
                $float::from_bits(*bits as _)
            }
            #[inline(always)]
            fn int_add(left: &$int, right: &$int) -> $int {
                left.wrapping_add(*right)
            }
            #[inline(always)]
            fn int_sub(left: &$int, right: &$int) -> $int {
                left.wrapping_sub(*right)
            }
            #[inline(always)]
            fn int_and(left: &$int, right: &$int) -> $int {
                left & right
            }
            #[inline(always)]
            fn int_xor(left: &$int, right: &$int) -> $int {
                left ^ right
            }
            #[inline(always)]
            fn int_shl(integer: &$int, count: u32) -> $int {
                integer << count
            }
            #[inline(always)]
            fn int_shr(integer: &$int, count: u32) -> $int {
                integer >> count
            }
        }
    };
}

machine_arithmetic!(f32, i32, Single);
machine_arithmetic!(f64, i64, Double);

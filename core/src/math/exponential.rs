//! The exponential and the functions made of it.

use std::f64::consts::LOG2_E;

use super::arithmetic::{Arithmetic, at_most, horner, with_sign};
use super::coefficients::{EXP_DOUBLE, EXP_SINGLE, LN_2_DOUBLE, LN_2_SINGLE};

/// An argument taken apart as `n·ln(2) + r` with an integer `n` and `|r| ≤ ln(2)/2`.
struct Reduced<A: Arithmetic> {
    /// `n`, added to the bits of the magic number of rounding.
    biased: A::Int,
    /// `e^r - 1`, accurate also where it is small.
    fraction: A,
}

/// `x·log₂(e)`, rounded to an integer by the addition of a magic number.
#[inline]
pub(super) fn rounded_exponent<A: Arithmetic>(x: &A) -> A {
    x.mul_add(&x.constant(LOG2_E), &x.constant(x.precision().magic()))
}

/// The integer that a [rounded exponent](rounded_exponent) holds.
#[inline]
pub(super) fn whole_exponent<A: Arithmetic>(rounded: &A) -> A {
    rounded.sub(&rounded.constant(rounded.precision().magic()))
}

/// Cody and Waite's reduction ("Software manual for the elementary functions", 1980): `ln(2)` is
/// subtracted in two parts, so that `r` keeps its accuracy.
#[inline]
fn reduce<A: Arithmetic>(x: &A) -> Reduced<A> {
    let precision = x.precision();
    let rounded = rounded_exponent(x);
    let n = whole_exponent(&rounded);
    let (high, low) = precision.pick(LN_2_SINGLE, LN_2_DOUBLE);
    let r = n.mul_add(&x.constant(-high), x);
    let r = n.mul_add(&x.constant(-low), &r);
    let higher_terms = horner(&r, precision.pick(EXP_SINGLE, EXP_DOUBLE));
    let fraction = r.mul(&r).mul_add(&higher_terms, &r);
    Reduced { biased: rounded.to_bits(), fraction }
}

/// `2ⁿ` for an integer of which the low bits hold `n`, between the least and the greatest normal exponent.
#[inline]
fn power_of_two<A: Arithmetic>(like: &A, n: &A::Int) -> A {
    let precision = like.precision();
    let shifted = A::int_shl(n, precision.mantissa_bits());
    A::from_bits(&A::int_add(&shifted, &like.integer(precision.one_bits())))
}

/// The argument just outside of where the exponential is finite and not zero, at most.
#[inline]
pub(super) fn clamped<A: Arithmetic>(x: &A) -> A {
    let (lowest, highest) = x.precision().pick((-104.0, 89.0), (-746.0, 710.0));
    let x = at_most(x, highest);
    A::select(&x.less(&x.constant(lowest)), &x.constant(lowest), &x)
}

/// A value times `2ⁿ`, where `n` is in the bits of a rounded exponent of a [clamped] argument: in two halves, each a normal
/// number, so that the result rounds once into the denormals.
#[inline]
pub(super) fn scaled<A: Arithmetic>(value: &A, biased: &A::Int) -> A {
    let n = A::int_sub(biased, &value.integer(value.precision().magic_bits()));
    let half = A::int_shr(&n, 1);
    let rest = A::int_sub(&n, &half);
    value.mul(&power_of_two(value, &half)).mul(&power_of_two(value, &rest))
}

/// The natural exponential.
#[inline]
pub fn exp<A: Arithmetic>(x: &A) -> A {
    let Reduced { biased, fraction } = reduce(&clamped(x));
    scaled(&fraction.add(&x.constant(1.0)), &biased)
}

/// `e^x - 1` as `2ⁿ·(e^r - 1) + (2ⁿ - 1)`, accurate also where it is small. For `x` whose `n` is a normal
/// exponent.
#[inline]
pub(super) fn exp_minus_one<A: Arithmetic>(x: &A) -> A {
    let Reduced { biased, fraction } = reduce(x);
    let power = power_of_two(x, &biased);
    power.mul_add(&fraction, &power.sub(&x.constant(1.0)))
}

/// The hyperbolic tangent, `(e²ˣ - 1) / (e²ˣ + 1)`; 1 where that rounds to it.
#[inline]
pub fn tanh<A: Arithmetic>(x: &A) -> A {
    let magnitude = at_most(&x.abs(), x.precision().pick(10.0, 20.0));
    let grown = exp_minus_one(&magnitude.add(&magnitude));
    with_sign(&grown.div(&grown.add(&x.constant(2.0))), x)
}

/// The logistic function `1 / (1 + e⁻ˣ)`, for negative arguments as `eˣ / (1 + eˣ)`: the exponential
/// never overflows.
#[inline]
pub fn sigmoid<A: Arithmetic>(x: &A) -> A {
    let one = x.constant(1.0);
    let decayed = exp(&x.abs().neg());
    let numerator = A::select(&x.less(&x.constant(0.0)), &decayed, &one);
    numerator.div(&decayed.add(&one))
}

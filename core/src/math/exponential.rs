//! The exponential and the functions made of it.

use std::f64::consts::LOG2_E;

use super::arithmetic::{Arithmetic, at_most, horner, with_sign};
use super::coefficients::{EXP_DOUBLE, EXP_SINGLE, LN_2_DOUBLE, LN_2_SINGLE};

/// An argument taken apart as `n·ln(2) + r` with an integer `n` and `|r| ≤ ln(2)/2`.
struct Reduced<A: Arithmetic> {
    /// `n` and what was added to it, in the low bits; those from twice the width of an exponent on are not set.
    biased: A::Int,
    r: A,
    /// `(e^r - 1 - r) / r²`.
    higher_terms: A,
}

impl<A: Arithmetic> Reduced<A> {
    /// `e^r`.
    #[inline]
    fn power(&self) -> A {
        let one = self.r.constant(1.0);
        self.higher_terms.mul_add(&self.r, &one).mul_add(&self.r, &one)
    }

    /// `e^r - 1`, accurate also where it is small.
    #[inline]
    fn power_minus_one(&self) -> A {
        // The square comes last: it need not be kept while the sum is computed.
        self.higher_terms.mul_add(&self.r.mul(&self.r), &self.r)
    }
}

/// What rounds an exponent: a magic number, and as many times the bias of stored exponents as the exponent is going to be
/// cut into parts, so that the bits of the sum are already those of the parts.
#[inline]
fn rounder<A: Arithmetic>(x: &A, parts: i64) -> A {
    let precision = x.precision();
    x.constant(precision.magic() + (parts * precision.bias()) as f64)
}

/// `x·log₂(e)`, rounded to an integer by the addition of a magic number, and biased for two parts.
#[inline]
pub(super) fn rounded_exponent<A: Arithmetic>(x: &A) -> A {
    x.mul_add(&x.constant(LOG2_E), &rounder(x, 2))
}

/// The integer that a [rounded exponent](rounded_exponent) holds.
#[inline]
pub(super) fn whole_exponent<A: Arithmetic>(rounded: &A) -> A {
    rounded.sub(&rounder(rounded, 2))
}

/// Cody and Waite's reduction ("Software manual for the elementary functions", 1980): `ln(2)` is
/// subtracted in two parts, so that `r` keeps its accuracy.
///
/// An odd number added to `n` would send ties to odd integers, but there are none: the significand of `log₂(e)` ends in a
/// bit that is set, or in its neighbour, so that its product with an argument is half an integer only far beyond the ranges of all callers.
#[inline]
fn reduce<A: Arithmetic>(x: &A, parts: i64) -> Reduced<A> {
    let precision = x.precision();
    let rounder = rounder(x, parts);
    let rounded = x.mul_add(&x.constant(LOG2_E), &rounder);
    let n = rounded.sub(&rounder);
    let (high, low) = precision.pick(LN_2_SINGLE, LN_2_DOUBLE);
    let r = n.mul_add(&x.constant(-high), x);
    let r = n.mul_add(&x.constant(-low), &r);
    let higher_terms = horner(&r, precision.pick(EXP_SINGLE, EXP_DOUBLE));
    Reduced { biased: rounded.to_bits(), r, higher_terms }
}

/// `2ⁿ` for an integer of which the low bits hold `n` and the bias, between the least and the greatest normal exponent.
/// One bit above those of an exponent has to be clear, the sign; all others do not matter.
#[inline]
fn power_of_two<A: Arithmetic>(like: &A, biased: &A::Int) -> A {
    A::from_bits(&A::int_shl(biased, like.precision().mantissa_bits()))
}

/// The argument just outside of where the exponential is finite and not zero, at most.
#[inline]
pub(super) fn clamped<A: Arithmetic>(x: &A) -> A {
    let (lowest, highest) = x.precision().pick((-104.0, 89.0), (-746.0, 710.0));
    let x = at_most(x, highest);
    A::select(&x.less(&x.constant(lowest)), &x.constant(lowest), &x)
}

/// A value times `2ⁿ`, where `n` is in the bits of a [rounded exponent](rounded_exponent) of a [clamped] argument: in two
/// halves, each a normal number, so that the result rounds once into the denormals. The halves of the bits are the
/// exponents of both as they are stored, since the bias was added twice.
#[inline]
pub(super) fn scaled<A: Arithmetic>(value: &A, biased: &A::Int) -> A {
    let half = A::int_shr(biased, 1);
    let rest = A::int_sub(biased, &half);
    value.mul(&power_of_two(value, &rest)).mul(&power_of_two(value, &half))
}

/// The natural exponential.
#[inline]
pub fn exp<A: Arithmetic>(x: &A) -> A {
    let reduced = reduce(&clamped(x), 2);
    scaled(&reduced.power(), &reduced.biased)
}

/// `e^x - 1` as `2ⁿ·(e^r - 1) + (2ⁿ - 1)`, accurate also where it is small. For `x` whose `n` is a normal
/// exponent.
#[inline]
pub(super) fn exp_minus_one<A: Arithmetic>(x: &A) -> A {
    let reduced = reduce(x, 1);
    let power = power_of_two(x, &reduced.biased);
    power.mul_add(&reduced.power_minus_one(), &power.sub(&x.constant(1.0)))
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

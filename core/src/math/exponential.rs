//! Exponentials.

use std::f64::consts::LOG2_E;

use super::arithmetic::{Arithmetic, at_least, at_most, horner, where_small};
use super::coefficients::{EXP_DOUBLE, EXP_SINGLE, LN_2_DOUBLE, LN_2_SINGLE};
use super::double_word::{Parts, times_constant};

/// An argument taken apart as `n·ln(2) + r` with an integer `n` and `|r| ≤ ln(2)/2`.
struct Reduced<A: Arithmetic> {
    /// `n` and what was added to it, in the low bits; those from twice the width of an exponent on are not set.
    biased: A::Int,
    r: A,
    /// `(e^r - 1 - r) / r²`.
    higher_terms: A,
}

impl<A: Arithmetic> Reduced<A> {
    #[inline]
    fn new(biased: A::Int, r: A) -> Self {
        let higher_terms = horner(&r, r.precision().pick(EXP_SINGLE, EXP_DOUBLE));
        Reduced { biased, r, higher_terms }
    }

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

/// The constant that rounds an exponent: a magic number, and the bias of stored exponents times the number of parts that
/// the exponent is going to be cut into, so that the bits of the sum are already those of the parts.
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
    Reduced::new(rounded.to_bits(), r)
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

/// The natural exponential of `high + low`, of which the second is much smaller.
#[inline]
pub(super) fn exp_of_sum<A: Arithmetic>(high: &A, low: &A) -> A {
    let Reduced { biased, r, .. } = reduce(&clamped(high), 2);
    let reduced = Reduced::new(biased, r.add(low));
    scaled(&reduced.power(), &reduced.biased)
}

/// Two to a power.
///
/// The power's integer part becomes the exponent; what is left of it, times `ln(2)` in two parts, is the argument of the exponential.
#[inline]
pub fn exp2<A: Arithmetic>(x: &A) -> A {
    let precision = x.precision();
    let (lowest, highest) = precision.pick((-151.0, 129.0), (-1076.0, 1025.0));
    let x = at_least(&at_most(x, highest), lowest);
    let rounder = rounder(&x, 2);
    let rounded = x.add(&rounder);
    let fraction = x.sub(&rounded.sub(&rounder));
    let (high, low) = precision.pick(LN_2_SINGLE, LN_2_DOUBLE);
    let (r, low) = times_constant(&fraction, Parts { high, low });
    let reduced = Reduced::new(rounded.to_bits(), r);
    let one = x.constant(1.0);
    let linear = reduced.higher_terms.mul_add(&reduced.r, &one);
    let power = linear.mul_add(&reduced.r, &low).add(&one);
    scaled(&power, &reduced.biased)
}

/// `2⁻ˢ·(e^x - 1)` for a shift `s`, as `2ⁿ⁻ˢ·(e^r - 1) + (2ⁿ⁻ˢ - 2⁻ˢ)`, accurate also where it is small. For `x` whose `n - s` is a
/// normal exponent.
#[inline]
pub(super) fn shifted_exp_minus_one<A: Arithmetic>(x: &A, shift: u32) -> A {
    let reduced = reduce(x, 1);
    let biased = A::int_sub(&reduced.biased, &x.integer(i64::from(shift)));
    let power = power_of_two(x, &biased);
    let one = x.constant(0.5f64.powi(shift as i32));
    power.mul_add(&reduced.power_minus_one(), &power.sub(&one))
}

/// `e^x - 1` for `x` whose `n` is a normal exponent.
#[inline]
pub(super) fn exp_minus_one<A: Arithmetic>(x: &A) -> A {
    let reduced = reduce(x, 1);
    let power = power_of_two(x, &reduced.biased);
    power.mul_add(&reduced.power_minus_one(), &power.sub(&x.constant(1.0)))
}

/// `e^x - 1`, accurate also where it is small.
///
/// Half of it is computed first, because the power of two of the largest results is no number.
#[inline]
pub fn exp_m1<A: Arithmetic>(x: &A) -> A {
    let (lowest, highest) = x.precision().pick((-20.0, 89.0), (-40.0, 710.0));
    let half = shifted_exp_minus_one(&at_least(&at_most(x, highest), lowest), 1);
    // Below, the square is lost in rounding; zeros and denormals stay as they are.
    where_small(x, x.precision().pick(2f64.powi(-26), 2f64.powi(-55)), x, &half.add(&half))
}

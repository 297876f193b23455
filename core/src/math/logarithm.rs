//! Logarithms.

use super::arithmetic::{Arithmetic, horner};
use super::coefficients::{
    LN_2_DOUBLE, LN_2_SINGLE, LN_DOUBLE, LN_SINGLE, LOG2_E_DOUBLE, LOG2_E_SINGLE, LOG10_2_DOUBLE,
    LOG10_2_SINGLE, LOG10_E_DOUBLE, LOG10_E_SINGLE,
};
use super::double_word::two_sum;

/// A positive normal number taken apart as `2ᵉ·m` with `√½ ≤ m < √2`.
pub(super) struct Scaled<A: Arithmetic> {
    pub(super) exponent: A,
    pub(super) mantissa: A,
}

/// Denormal numbers are scaled into the normal ones first. The exponent becomes a floating-point number
/// by standing in the low bits of the magic number of rounding.
#[inline]
pub(super) fn take_apart<A: Arithmetic>(x: &A) -> Scaled<A> {
    let precision = x.precision();
    let (shift, scale) = precision.pick((25.0, 33_554_432.0), (54.0, 18_014_398_509_481_984.0));
    let is_denormal = x.less(&x.constant(precision.min_positive()));
    let normal = A::select(&is_denormal, &x.mul(&x.constant(scale)), x);
    let shift = A::select(&is_denormal, &x.constant(shift), &x.constant(0.0));

    let root_half = x.integer(precision.root_half_bits());
    let to_one = x.integer(precision.one_bits() - precision.root_half_bits());
    let moved = A::int_add(&normal.to_bits(), &to_one);
    let biased = A::int_shr(&moved, precision.mantissa_bits());
    let with_magic = A::from_bits(&A::int_add(&biased, &x.integer(precision.magic_bits())));
    let exponent = with_magic.sub(&x.constant(precision.magic() + precision.bias() as f64)).sub(&shift);
    let low_bits = x.integer((1 << precision.mantissa_bits()) - 1);
    let mantissa = A::from_bits(&A::int_add(&A::int_and(&moved, &low_bits), &root_half));
    Scaled { exponent, mantissa }
}

/// The natural logarithm of a mantissa, `large - small`.
///
/// With `f = m - 1` and `s = f / (2 + f)`, `ln(m) = 2·atanh(s) = f - (f²/2 - s·(f²/2 + s²·R(s²)))`, the form
/// of FreeBSD's `e_log.c` (Sun Microsystems, 1993), in which the large terms are exact.
struct Mantissa<A> {
    f: A,
    half_square: A,
    /// `s·(f²/2 + s²·R(s²))` as its two factors.
    s: A,
    inner: A,
}

#[inline]
fn logarithm_of_mantissa<A: Arithmetic>(mantissa: &A) -> Mantissa<A> {
    let f = mantissa.sub(&mantissa.constant(1.0));
    let s = f.div(&f.add(&f.constant(2.0)));
    let z = s.mul(&s);
    let remainder = z.mul(&horner(&z, f.precision().pick(LN_SINGLE, LN_DOUBLE)));
    let half_square = f.mul(&f).mul(&f.constant(0.5));
    let inner = half_square.add(&remainder);
    Mantissa { f, half_square, s, inner }
}

/// A logarithm's value where the argument is positive and finite; otherwise -∞ at ±0, the argument itself at ∞, and NaN.
#[inline]
fn with_limits<A: Arithmetic>(x: &A, value: &A) -> A {
    let (zero, infinity) = (x.constant(0.0), x.constant(f64::INFINITY));
    let finite = A::select(&x.less(&infinity), value, x);
    let outside = A::select(&x.equal(&zero), &infinity.neg(), &x.constant(f64::NAN));
    A::select(&zero.less(x), &finite, &outside)
}

/// The natural logarithm; -∞ at ±0 and NaN below.
#[inline]
pub fn ln<A: Arithmetic>(x: &A) -> A {
    let Scaled { exponent, mantissa } = take_apart(x);
    let Mantissa { f, half_square, s, inner } = logarithm_of_mantissa(&mantissa);
    let (high, low) = x.precision().pick(LN_2_SINGLE, LN_2_DOUBLE);
    let small = s.mul_add(&inner, &exponent.mul(&x.constant(low)));
    let value = exponent.mul_add(&x.constant(high), &f.sub(&half_square.sub(&small)));
    with_limits(x, &value)
}

/// The logarithm to another base: `exponent·scale + ln(mantissa)·factor`, with both constants in two parts.
#[inline]
fn logarithm_to<A: Arithmetic>(x: &A, scale: (f64, f64), factor: (f64, f64)) -> A {
    let Scaled { exponent, mantissa } = take_apart(x);
    let Mantissa { f, half_square, s, inner } = logarithm_of_mantissa(&mantissa);
    let natural = f.sub(&half_square.sub(&s.mul(&inner)));
    let low = exponent.mul_add(&x.constant(scale.1), &natural.mul(&x.constant(factor.1)));
    let product = natural.mul_add(&x.constant(factor.0), &low);
    with_limits(x, &exponent.mul_add(&x.constant(scale.0), &product))
}

/// The logarithm to base 2, exact for powers of two; -∞ at ±0 and NaN below.
#[inline]
pub fn log2<A: Arithmetic>(x: &A) -> A {
    logarithm_to(x, (1.0, 0.0), x.precision().pick(LOG2_E_SINGLE, LOG2_E_DOUBLE))
}

/// The logarithm to base 10; -∞ at ±0 and NaN below.
#[inline]
pub fn log10<A: Arithmetic>(x: &A) -> A {
    let precision = x.precision();
    let scale = precision.pick(LOG10_2_SINGLE, LOG10_2_DOUBLE);
    logarithm_to(x, scale, precision.pick(LOG10_E_SINGLE, LOG10_E_DOUBLE))
}

/// The natural logarithm of `1 + x`, accurate also where it is small; -∞ at -1 and NaN below.
///
/// The error of the sum `u = 1 + x`, divided by `u`, is added to the logarithm of `u`.
#[inline]
pub fn ln_1p<A: Arithmetic>(x: &A) -> A {
    let zero = x.constant(0.0);
    let (sum, error) = two_sum(&x.constant(1.0), x);
    // At -1 the quotient has no value, and the error of an infinite sum has none.
    let has_error = A::select(&sum.less(&x.constant(f64::INFINITY)), &error, &zero);
    let correction = A::select(&error.equal(&zero), &zero, &has_error.div(&sum));
    let value = ln(&sum).add(&correction);
    A::select(&x.equal(&zero), x, &value)
}

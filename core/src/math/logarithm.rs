//! The natural logarithm.

use super::arithmetic::{Arithmetic, horner};
use super::coefficients::{LN_2_DOUBLE, LN_2_SINGLE, LN_DOUBLE, LN_SINGLE};

/// A positive normal number taken apart as `2ᵉ·m` with `√½ ≤ m < √2`.
struct Scaled<A: Arithmetic> {
    exponent: A,
    mantissa: A,
}

/// Denormal numbers are scaled into the normal ones first. The exponent becomes a floating-point number
/// by standing in the low bits of the magic number of rounding.
#[inline]
fn take_apart<A: Arithmetic>(x: &A) -> Scaled<A> {
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

/// The natural logarithm; -∞ at ±0 and NaN below.
///
/// With `f = m - 1` and `s = f / (2 + f)`, `ln(m) = 2·atanh(s) = f - (f²/2 - s·(f²/2 + s²·R(s²)))`, the form
/// of FreeBSD's `e_log.c` (Sun Microsystems, 1993), in which the large terms are exact.
#[inline]
pub fn ln<A: Arithmetic>(x: &A) -> A {
    let precision = x.precision();
    let Scaled { exponent, mantissa } = take_apart(x);
    let f = mantissa.sub(&x.constant(1.0));
    let s = f.div(&f.add(&x.constant(2.0)));
    let z = s.mul(&s);
    let remainder = z.mul(&horner(&z, precision.pick(LN_SINGLE, LN_DOUBLE)));
    let half_square = f.mul(&f).mul(&x.constant(0.5));
    let (high, low) = precision.pick(LN_2_SINGLE, LN_2_DOUBLE);
    let small = s.mul_add(&half_square.add(&remainder), &exponent.mul(&x.constant(low)));
    let value = exponent.mul_add(&x.constant(high), &f.sub(&half_square.sub(&small)));

    let zero = x.constant(0.0);
    let infinity = x.constant(f64::INFINITY);
    let finite = A::select(&x.less(&infinity), &value, x);
    let outside = A::select(&x.equal(&zero), &infinity.neg(), &x.constant(f64::NAN));
    A::select(&zero.less(x), &finite, &outside)
}

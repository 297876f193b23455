//! Sine and cosine.

use std::f64::consts::FRAC_2_PI;

use super::arithmetic::{Arithmetic, horner};
use super::coefficients::{COS_DOUBLE, COS_SINGLE, HALF_PI_DOUBLE, HALF_PI_SINGLE, SIN_DOUBLE, SIN_SINGLE};

/// A magnitude taken apart as `quadrant·π/2 + r` with `|r|` at most a little over `π/4`.
struct Reduced<A: Arithmetic> {
    /// The low bits are those of the quadrant.
    quadrant: A::Int,
    r: A,
}

/// Cody and Waite's reduction with `π/2` in three parts. Each product is exact before it is subtracted,
/// because multiplication and subtraction are fused.
#[inline]
fn reduce<A: Arithmetic>(magnitude: &A) -> Reduced<A> {
    let precision = magnitude.precision();
    let magic = magnitude.constant(precision.magic());
    let rounded = magnitude.mul_add(&magnitude.constant(FRAC_2_PI), &magic);
    let n = rounded.sub(&magic);
    let parts = precision.pick(HALF_PI_SINGLE, HALF_PI_DOUBLE);
    let r = parts.iter().fold(magnitude.clone(), |r, &part| n.mul_add(&r.constant(-part), &r));
    Reduced { quadrant: rounded.to_bits(), r }
}

/// The sine of `quadrant·π/2 + r`, with the sign bit of `sign` flipped in.
#[inline]
fn sine_of<A: Arithmetic>(magnitude: &A, quadrant: &A::Int, r: &A, sign: &A::Int) -> A {
    let precision = magnitude.precision();
    let z = r.mul(r);
    let sine = r.mul(&z).mul_add(&horner(&z, precision.pick(SIN_SINGLE, SIN_DOUBLE)), r);
    let parabola = z.mul_add(&r.constant(-0.5), &r.constant(1.0));
    let cosine = z.mul(&z).mul_add(&horner(&z, precision.pick(COS_SINGLE, COS_DOUBLE)), &parabola);

    let is_even = A::is_zero(&A::int_and(quadrant, &r.integer(1)));
    let value = A::select(&is_even, &sine, &cosine);
    let second_bit = A::int_and(quadrant, &r.integer(2));
    let flip = A::int_shl(&second_bit, precision.pick(30, 62));
    let signed = A::from_bits(&A::int_xor(&value.to_bits(), &A::int_xor(&flip, sign)));

    let limit = r.constant(precision.pick(4_194_304.0, 35_184_372_088_832.0));
    A::select(&limit.less(magnitude), &r.constant(f64::NAN), &signed)
}

/// The sine of an angle in radians. NaN beyond 2²² (single) or 2⁴⁵ (double), where an argument no longer
/// says which angle is meant.
#[inline]
pub fn sin<A: Arithmetic>(x: &A) -> A {
    let magnitude = x.abs();
    let Reduced { quadrant, r } = reduce(&magnitude);
    let sign = A::int_and(&x.to_bits(), &x.integer(x.precision().sign_bit()));
    sine_of(&magnitude, &quadrant, &r, &sign)
}

/// The cosine of an angle in radians; the range is that of [`sin`].
#[inline]
pub fn cos<A: Arithmetic>(x: &A) -> A {
    let magnitude = x.abs();
    let Reduced { quadrant, r } = reduce(&magnitude);
    let quadrant = A::int_add(&quadrant, &x.integer(1));
    sine_of(&magnitude, &quadrant, &r, &x.integer(0))
}

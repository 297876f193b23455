//! Sine, cosine and tangent.

use super::angle::{Reduced, reduce};
use super::arithmetic::{Arithmetic, horner, sign_of};
use super::coefficients::{COS_DOUBLE, COS_SINGLE, SIN_DOUBLE, SIN_SINGLE};

/// The sine of an angle in radians; NaN of infinities.
#[inline]
pub fn sin<A: Arithmetic>(x: &A) -> A {
    let Reduced { quadrant, r } = reduce(&x.abs());
    sine_of(&quadrant, &r, &sign_of(x))
}

/// The cosine of an angle in radians; NaN of infinities.
#[inline]
pub fn cos<A: Arithmetic>(x: &A) -> A {
    let Reduced { quadrant, r } = reduce(&x.abs());
    let quadrant = A::int_add(&quadrant, &x.integer(1));
    sine_of(&quadrant, &r, &x.integer(0))
}

/// The tangent of an angle in radians, the quotient of sine and cosine; NaN of infinities.
#[inline]
pub fn tan<A: Arithmetic>(x: &A) -> A {
    let Reduced { quadrant, r } = reduce(&x.abs());
    let (sine, cosine) = (near_sine(&r), near_cosine(&r));
    let is_even = is_even(&quadrant, &r);
    let numerator = A::select(&is_even, &sine, &cosine);
    let denominator = A::select(&is_even, &cosine, &sine.neg());
    with_flipped_sign(&numerator.div(&denominator), &sign_of(x))
}

/// The sine of `quadrant·π/2 + r`, with the sign bit of `sign` flipped in.
#[inline]
fn sine_of<A: Arithmetic>(quadrant: &A::Int, r: &A, sign: &A::Int) -> A {
    let value = A::select(&is_even(quadrant, r), &near_sine(r), &near_cosine(r));
    let second_bit = A::int_and(quadrant, &r.integer(2));
    let flip = A::int_shl(&second_bit, r.precision().pick(30, 62));
    with_flipped_sign(&value, &A::int_xor(&flip, sign))
}

#[inline]
fn is_even<A: Arithmetic>(quadrant: &A::Int, r: &A) -> A::Mask {
    A::is_zero(&A::int_and(quadrant, &r.integer(1)))
}

#[inline]
fn with_flipped_sign<A: Arithmetic>(x: &A, sign: &A::Int) -> A {
    A::from_bits(&A::int_xor(&x.to_bits(), sign))
}

/// The sine of a reduced angle.
#[inline]
fn near_sine<A: Arithmetic>(r: &A) -> A {
    let z = r.mul(r);
    r.mul(&z).mul_add(&horner(&z, r.precision().pick(SIN_SINGLE, SIN_DOUBLE)), r)
}

/// The cosine of a reduced angle.
#[inline]
fn near_cosine<A: Arithmetic>(r: &A) -> A {
    let z = r.mul(r);
    let parabola = z.mul_add(&r.constant(-0.5), &r.constant(1.0));
    z.mul(&z).mul_add(&horner(&z, r.precision().pick(COS_SINGLE, COS_DOUBLE)), &parabola)
}

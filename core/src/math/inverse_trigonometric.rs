//! The inverse functions of sine, cosine and tangent.

use std::f64::consts::FRAC_PI_8;

use super::arithmetic::{Arithmetic, horner, sign_of, with_sign};
use super::coefficients::{
    ASIN_DOUBLE, ASIN_SINGLE, ATAN_DOUBLE, ATAN_SINGLE, QUARTER_PI_DOUBLE, QUARTER_PI_SINGLE,
};

/// The arc tangent of a number.
#[inline]
pub fn atan<A: Arithmetic>(x: &A) -> A {
    let (magnitude, one) = (x.abs(), x.constant(1.0));
    let is_large = one.less(&magnitude);
    let smaller = A::select(&is_large, &one, &magnitude);
    let larger = A::select(&is_large, &magnitude, &one);
    let Octant { quarters, angle } = octant(&smaller, &larger);
    let quarters = A::select(&is_large, &x.constant(2.0).sub(&quarters), &quarters);
    let angle = A::select(&is_large, &angle.neg(), &angle);
    with_sign(&turned(&quarters, &angle), x)
}

/// The angle in radians of the point with ordinate `y`, the first operand, and abscissa `x`; from -π to π, with the signs of zeros
/// counting as in IEEE 754.
#[inline]
pub fn atan2<A: Arithmetic>(y: &A, x: &A) -> A {
    let (height, width) = (y.abs(), x.abs());
    let is_steep = width.less(&height);
    let smaller = A::select(&is_steep, &width, &height);
    let larger = A::select(&is_steep, &height, &width);
    let Octant { quarters, angle } = octant(&smaller, &larger);
    let quarters = A::select(&is_steep, &x.constant(2.0).sub(&quarters), &quarters);
    let angle = A::select(&is_steep, &angle.neg(), &angle);
    let is_right = A::is_zero(&sign_of(x));
    let quarters = A::select(&is_right, &quarters, &x.constant(4.0).sub(&quarters));
    let angle = A::select(&is_right, &angle, &angle.neg());
    let value = with_sign(&turned(&quarters, &angle), y);
    let value = A::select(&x.equal(x), &value, x);
    A::select(&y.equal(y), &value, y)
}

/// The arc sine of a number; NaN beyond -1 and 1.
#[inline]
pub fn asin<A: Arithmetic>(x: &A) -> A {
    let Arc { is_far, root, angle } = arc(x);
    // Near 0 the angle itself, elsewhere π/2 minus twice that of the root.
    let twice = root.add(&angle).mul(&x.constant(-2.0));
    let far = turned(&x.constant(2.0), &twice);
    with_sign(&A::select(&is_far, &far, &root.add(&angle)), x)
}

/// The arc cosine of a number; NaN beyond -1 and 1.
#[inline]
pub fn acos<A: Arithmetic>(x: &A) -> A {
    let Arc { is_far, root, angle } = arc(x);
    let (zero, two) = (x.constant(0.0), x.constant(2.0));
    let sine = root.add(&angle);
    let is_negative = x.less(&zero);
    let signed = A::select(&is_negative, &sine, &sine.neg());
    let near = turned(&two, &signed);
    let twice = sine.mul(&two);
    let far = A::select(&is_negative, &turned(&x.constant(4.0), &twice.neg()), &twice);
    A::select(&is_far, &far, &near)
}

/// A part of a right angle: `quarters·π/4 + angle` with a small angle.
struct Octant<A> {
    quarters: A,
    angle: A,
}

/// The arc tangent of `smaller / larger`, numbers that are not negative. Beyond the tangent of `π/8` it is that of
/// `(smaller - larger) / (smaller + larger)` plus `π/4`, so that a polynomial of low degree suffices.
#[inline]
fn octant<A: Arithmetic>(smaller: &A, larger: &A) -> Octant<A> {
    let precision = smaller.precision();
    let (zero, one) = (smaller.constant(0.0), smaller.constant(1.0));
    // Sums of the largest numbers overflow: both are scaled.
    let (limit, quarter) = (smaller.constant(precision.huge()), smaller.constant(0.25));
    let scale = A::select(&limit.less(larger), &quarter, &one);
    let (small, large) = (smaller.mul(&scale), larger.mul(&scale));

    let tangent = smaller.constant(FRAC_PI_8.tan());
    let is_far = large.mul(&tangent).less(&small);
    let numerator = A::select(&is_far, &small.sub(&large), &small);
    let denominator = A::select(&is_far, &small.add(&large), &large);
    // Equal numbers may both be infinite; two zeros have the angle 0.
    let is_diagonal = smaller.equal(larger);
    let is_zero = larger.equal(&zero);
    let ratio = A::select(&is_diagonal, &zero, &numerator.div(&denominator));
    let quarters = A::select(&is_far, &one, &zero);
    let quarters = A::select(&is_diagonal, &A::select(&is_zero, &zero, &one), &quarters);

    let z = ratio.mul(&ratio);
    let series = horner(&z, precision.pick(ATAN_SINGLE, ATAN_DOUBLE));
    Octant { quarters, angle: ratio.mul(&z).mul_add(&series, &ratio) }
}

/// `quarters·π/4 + angle`
#[inline]
fn turned<A: Arithmetic>(quarters: &A, angle: &A) -> A {
    let (high, low) = angle.precision().pick(QUARTER_PI_SINGLE, QUARTER_PI_DOUBLE);
    let low = quarters.mul_add(&angle.constant(low), angle);
    quarters.mul_add(&angle.constant(high), &low)
}

/// The arc sine of a small number, as `root + angle`.
struct Arc<A: Arithmetic> {
    /// Whether the magnitude is above one half.
    is_far: A::Mask,
    /// The magnitude, or beyond one half the root of half of what is missing to 1.
    root: A,
    /// The difference between the arc and the root.
    angle: A,
}

#[inline]
fn arc<A: Arithmetic>(x: &A) -> Arc<A> {
    let (magnitude, one, half) = (x.abs(), x.constant(1.0), x.constant(0.5));
    let is_far = half.less(&magnitude);
    let missing = one.sub(&magnitude).mul(&half);
    let z = A::select(&is_far, &missing, &magnitude.mul(&magnitude));
    let root = A::select(&is_far, &missing.sqrt(), &magnitude);
    let series = horner(&z, x.precision().pick(ASIN_SINGLE, ASIN_DOUBLE));
    let angle = root.mul(&z).mul(&series);
    Arc { is_far, root, angle }
}

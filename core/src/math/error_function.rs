//! The error function.

use super::Precision;
use super::arithmetic::{Arithmetic, at_most, horner, with_sign};
use super::coefficients::{ERF_LARGE_DOUBLE, ERF_LARGE_SINGLE, ERF_SMALL_DOUBLE, ERF_SMALL_SINGLE};
use super::exponential::exp_minus_one;

/// The error function `2/√π · ∫₀ˣ e^(-t²) dt`.
///
/// Up to 1 a polynomial in `x²`; beyond, what is missing to 1.
#[inline]
pub fn erf<A: Arithmetic>(x: &A) -> A {
    let precision = x.precision();
    let magnitude = x.abs();
    let square = magnitude.mul(&magnitude);
    let series = horner(&square, precision.pick(ERF_SMALL_SINGLE, ERF_SMALL_DOUBLE));
    let near = magnitude.mul_add(&series, &magnitude);
    let far = match precision {
        Precision::Single => far_single(&magnitude),
        Precision::Double => far_double(&magnitude),
    };
    with_sign(&A::select(&magnitude.less(&x.constant(1.0)), &near, &far), x)
}

/// `1 - r²`, where `r` is a ratio of polynomials: the root falls half as steeply, which a ratio of low degree follows, in fewer
/// instructions and a shorter chain of them than a polynomial and an exponential take. The polynomials are of the distance from 1, where
/// most is missing: they are most exact there.
#[inline]
fn far_single<A: Arithmetic>(magnitude: &A) -> A {
    let one = magnitude.constant(1.0);
    let beyond = at_most(&magnitude.sub(&one), 3.0);
    let (above, below) = ERF_LARGE_SINGLE;
    let root = horner(&beyond, above).div(&horner(&beyond, below));
    root.neg().mul_add(&root, &one)
}

/// `1 - e^(-g(x))` with a polynomial `g`, which is smooth because it grows like a parabola: a ratio would need twelve powers on both
/// sides.
#[inline]
fn far_double<A: Arithmetic>(magnitude: &A) -> A {
    let decay = horner(&at_most(magnitude, 5.95), ERF_LARGE_DOUBLE);
    exp_minus_one(&decay.neg()).neg()
}

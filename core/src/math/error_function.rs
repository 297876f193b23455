//! The error function.

use super::arithmetic::{Arithmetic, at_most, horner, with_sign};
use super::coefficients::{ERF_LARGE_DOUBLE, ERF_LARGE_SINGLE, ERF_SMALL_DOUBLE, ERF_SMALL_SINGLE};
use super::exponential::exp_minus_one;

/// The error function `2/√π · ∫₀ˣ e^(-t²) dt`.
///
/// Near zero a polynomial in `x²`; beyond, `1 - e^(-g(|x|))` with a polynomial `g`, which is smooth because
/// it grows like a parabola.
#[inline]
pub fn erf<A: Arithmetic>(x: &A) -> A {
    let precision = x.precision();
    let magnitude = x.abs();
    let square = magnitude.mul(&magnitude);
    let series = horner(&square, precision.pick(ERF_SMALL_SINGLE, ERF_SMALL_DOUBLE));
    let near = magnitude.mul_add(&series, &magnitude);

    let limited = at_most(&magnitude, precision.pick(3.95, 5.95));
    let decay = horner(&limited, precision.pick(ERF_LARGE_SINGLE, ERF_LARGE_DOUBLE));
    let far = exp_minus_one(&decay.neg()).neg();

    let split = x.constant(precision.pick(0.9, 1.0));
    with_sign(&A::select(&magnitude.less(&split), &near, &far), x)
}

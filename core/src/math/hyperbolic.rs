//! Hyperbolic functions and the logistic function, made of exponentials.

use super::arithmetic::{Arithmetic, at_most, where_small, with_sign};
use super::exponential::{exp, exp_minus_one, shifted_exp_minus_one};

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

/// A quarter of `e^|x| - 1`, which is finite as far as the hyperbolic sine is.
#[inline]
fn quarter_of_growth<A: Arithmetic>(x: &A) -> A {
    shifted_exp_minus_one(&at_most(&x.abs(), x.precision().pick(89.5, 710.5)), 2)
}

/// The hyperbolic sine, `(E + E / (E + 1)) / 2` with `E = e^|x| - 1`, with the sign of the argument.
#[inline]
pub fn sinh<A: Arithmetic>(x: &A) -> A {
    let quarter = quarter_of_growth(x);
    let growth_and_one = quarter.mul_add(&x.constant(4.0), &x.constant(1.0));
    let half = quarter.add(&quarter.div(&growth_and_one));
    let value = with_sign(&half.add(&half), x);
    // Below, the cube is lost in rounding.
    where_small(x, x.precision().pick(2f64.powi(-13), 2f64.powi(-27)), x, &value)
}

/// The hyperbolic cosine, `2·(P + 1 / (16·P))` with `P = e^|x| / 4`.
#[inline]
pub fn cosh<A: Arithmetic>(x: &A) -> A {
    let power = quarter_of_growth(x).add(&x.constant(0.25));
    let eighth = x.constant(0.125).div(&power);
    power.mul_add(&x.constant(2.0), &eighth)
}

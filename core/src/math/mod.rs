//! Arithmetic on elements, defined once.
//!
//! The transcendental functions are written against the trait [`Arithmetic`], whose operations every
//! machine has and rounds alike. Executed on `f32` and `f64` they are what [`scalar`] offers to the
//! references and to the interpreter; executed on [`Expr`](crate::expr::Expr) by [`expand`] they become
//! operations of the intermediate representation; a backend executes them on values of its own. So a
//! program gives the same bits wherever it runs. They have no branches, no tables, and no `f64` inside
//! an `f32` function, hence they vectorise.
//!
//! Greatest errors in units in the last place. Single: measured against `f64` at every third bit pattern, those from `erf` on at
//! every 97th.
//! Double: against the platform's functions, whose own error is included, at two million random
//! arguments, and against 40-digit values for `erf`. The tests in this directory repeat it with fewer.
//!
//! | function | single | double | remarks |
//! |---|---|---|---|
//! | [`exp`] | 1.0 | 1 | infinite above the largest argument, gradual underflow to 0 |
//! | [`ln`] | 0.85 | 1 | -∞ at ±0, NaN below |
//! | [`tanh`] | 2.7 | 4 | |
//! | [`sigmoid`] | 2.5 | 2 | gradual underflow to 0 |
//! | [`erf`] | 1.3 | 2 | |
//! | [`sin`], [`cos`] | 1.6 | 2 | up to 10⁵ (double: 10⁹); absolute error below 10⁻⁵ up to 2²² (10⁻⁹ up to 2⁴⁵), NaN beyond |
//! | [`rsqrt`] | 1.5 | 1 | the reciprocal of the square root, both rounded |
//!
//! Every function keeps NaN, and odd functions keep the sign of zero. `f16` and `bf16` are computed in
//! `f32` and rounded.

mod arithmetic;
mod coefficients;
mod error_function;
mod exponential;
mod logarithm;
mod precision;
pub mod scalar;
mod scaling;
mod symbolic;
mod trigonometric;

#[cfg(test)]
mod accuracy;

pub use arithmetic::Arithmetic;
pub use error_function::erf;
pub use exponential::{exp, sigmoid, tanh};
pub use logarithm::ln;
pub use precision::Precision;
pub use scaling::{Scaling, as_scaling};
pub use symbolic::expand;
pub use trigonometric::{cos, sin};

/// The reciprocal of the square root: `1 / √x`, each step rounded. ±∞ at ±0, NaN below.
#[inline]
pub fn rsqrt<A: Arithmetic>(x: &A) -> A {
    x.constant(1.0).div(&x.sqrt())
}

/// A power with an integer exponent by repeated multiplication: the exponent's binary digits are taken
/// from the lowest, the base is squared after each, and the squares whose digit is 1 are multiplied
/// from the lowest. `None` for exponent 0. Multiplications are `multiply(product so far, square)` and
/// `multiply(square, square)`.
pub fn power<V: Clone>(base: &V, mut exponent: u32, mut multiply: impl FnMut(&V, &V) -> V) -> Option<V> {
    let mut square = base.clone();
    let mut product = None;
    loop {
        if exponent & 1 == 1 {
            product = Some(product.map_or_else(|| square.clone(), |product| multiply(&product, &square)));
        }
        exponent >>= 1;
        if exponent == 0 {
            return product;
        }
        square = multiply(&square, &square);
    }
}

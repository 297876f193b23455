//! Numbers as the sum of two of one precision, which together have twice as many digits.
//!
//! The algorithms are those of Dekker ("A floating-point technique for extending the available precision", 1971) and
//! Knuth (TAOCP 2, 4.2.2), with a fused multiply-add where these split factors.

use super::Arithmetic;

/// `a + b` as the rounded sum and its error.
#[inline]
pub(super) fn two_sum<A: Arithmetic>(a: &A, b: &A) -> (A, A) {
    let sum = a.add(b);
    let of_b = sum.sub(a);
    let error = a.sub(&sum.sub(&of_b)).add(&b.sub(&of_b));
    (sum, error)
}

/// `a + b` as the rounded sum and its error, for `a` that is 0 or not smaller in magnitude than `b`.
#[inline]
pub(super) fn fast_two_sum<A: Arithmetic>(a: &A, b: &A) -> (A, A) {
    let sum = a.add(b);
    let error = b.sub(&sum.sub(a));
    (sum, error)
}

/// `a · b` as the rounded product and its error.
#[inline]
pub(super) fn two_product<A: Arithmetic>(a: &A, b: &A) -> (A, A) {
    let product = a.mul(b);
    let error = a.mul_add(b, &product.neg());
    (product, error)
}

/// A constant in two parts.
#[derive(Clone, Copy)]
pub(super) struct Parts {
    pub(super) high: f64,
    pub(super) low: f64,
}

/// `a` times a constant in two parts: the rounded product and what is left.
#[inline]
pub(super) fn times_constant<A: Arithmetic>(a: &A, constant: Parts) -> (A, A) {
    let (product, error) = two_product(a, &a.constant(constant.high));
    (product, a.mul_add(&a.constant(constant.low), &error))
}

//! Powers.

use super::arithmetic::{Arithmetic, at_most, horner, with_sign};
use super::coefficients::{
    LONG_LN_DOUBLE, LONG_LN_SINGLE, SHORT_LN_2_DOUBLE, SHORT_LN_2_SINGLE, TWO_THIRDS_DOUBLE,
    TWO_THIRDS_SINGLE,
};
use super::double_word::{Parts, fast_two_sum, times_constant, two_product, two_sum};
use super::exponential::exp_of_sum;
use super::logarithm::{Scaled, take_apart};

/// The reciprocal of the square root: `1 / √x`, each step rounded. ±∞ at ±0, NaN below.
#[inline]
pub fn rsqrt<A: Arithmetic>(x: &A) -> A {
    x.constant(1.0).div(&x.sqrt())
}

/// A number to the power of another, with the special values of IEEE 754's `pow`: a negative number has powers with whole
/// exponents only, and any number to the power 0, and 1 to any power, is 1.
///
/// `e^(y·ln(x))`, with logarithm and product in two parts.
#[inline]
pub fn powf<A: Arithmetic>(x: &A, y: &A) -> A {
    let (zero, one) = (x.constant(0.0), x.constant(1.0));
    let magnitude = x.abs();
    let (high, low) = long_logarithm(&magnitude);
    let (product, error) = two_product(y, &high);
    // Beyond the range of exponentials there is no error to speak of, and infinities have none.
    let in_range = product.abs().less(&x.constant(2048.0));
    let error = A::select(&in_range, &y.mul_add(&low, &error), &zero);
    let power = exp_of_sum(&product, &error);

    // An odd exponent keeps the sign; of a negative number, others must be whole.
    let exponent = y.abs();
    let is_whole = is_integer(&exponent);
    let half_is_whole = is_integer(&exponent.mul(&x.constant(0.5)));
    let signed = A::select(&half_is_whole, &power, &with_sign(&power, x));
    let is_infinite = magnitude.equal(&x.constant(f64::INFINITY));
    let without_value = A::select(&is_infinite, &power, &x.constant(f64::NAN));
    let broken = A::select(&x.less(&zero), &without_value, &power);
    let value = A::select(&is_whole, &signed, &broken);

    // To the power of ±∞, 1 and -1 are 1.
    let exponent_is_infinite = exponent.equal(&x.constant(f64::INFINITY));
    let of_one = A::select(&exponent_is_infinite, &one, &value);
    let value = A::select(&magnitude.equal(&one), &of_one, &value);
    let value = A::select(&x.equal(x), &value, x);
    let value = A::select(&y.equal(&zero), &one, &value);
    A::select(&x.equal(&one), &one, &value)
}

/// Whether a number that is not negative is an integer; infinity is one, NaN is not.
#[inline]
fn is_integer<A: Arithmetic>(x: &A) -> A::Mask {
    let whole = x.constant(x.precision().whole());
    let bounded = at_most(x, x.precision().whole());
    bounded.add(&whole).sub(&whole).equal(&bounded)
}

/// The natural logarithm of a number that is not negative, in two parts, with an error that is lost in rounding also after a
/// multiplication by the largest exponent of a finite power.
///
/// As in [`ln`](super::ln), but with `s = f / (2 + f)` and the terms up to `s³` of `2·atanh(s) = 2·s + ⅔·s³ + s⁵·R(s²)` in two
/// parts.
#[inline]
fn long_logarithm<A: Arithmetic>(x: &A) -> (A, A) {
    let precision = x.precision();
    let Scaled { exponent, mantissa } = take_apart(x);
    let (one, two) = (x.constant(1.0), x.constant(2.0));
    let f = mantissa.sub(&one);
    let (divisor, divisor_low) = fast_two_sum(&two, &f);
    let s = f.div(&divisor);
    let remainder = s.neg().mul_add(&divisor, &f).sub(&s.mul(&divisor_low));
    let s_low = remainder.div(&divisor);

    let (z, z_error) = two_product(&s, &s);
    let z_low = s.mul(&two).mul_add(&s_low, &z_error);
    let (high, low) = precision.pick(TWO_THIRDS_SINGLE, TWO_THIRDS_DOUBLE);
    let (cubic, cubic_low) = times_constant(&z, Parts { high, low });
    let cubic_low = z_low.mul_add(&x.constant(high), &cubic_low);
    let series = horner(&z, precision.pick(LONG_LN_SINGLE, LONG_LN_DOUBLE));
    let factor_low = z.mul(&z).mul_add(&series, &cubic_low);

    // s · (2 + cubic + factor_low) + s_low · (2 + cubic)
    let (term, term_error) = two_product(&s, &cubic);
    let term_low = s_low.mul_add(&cubic.add(&two), &s.mul_add(&factor_low, &term_error));
    let (near, near_low) = fast_two_sum(&s.mul(&two), &term);

    let (high, low) = precision.pick(SHORT_LN_2_SINGLE, SHORT_LN_2_DOUBLE);
    let (sum, sum_low) = two_sum(&exponent.mul(&x.constant(high)), &near);
    let sum_low = exponent.mul_add(&x.constant(low), &sum_low.add(&near_low).add(&term_low));
    let (sum, sum_low) = fast_two_sum(&sum, &sum_low);

    let (zero, infinity) = (x.constant(0.0), x.constant(f64::INFINITY));
    let sum = A::select(&x.equal(&zero), &infinity.neg(), &sum);
    (A::select(&x.equal(&infinity), &infinity, &sum), sum_low)
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

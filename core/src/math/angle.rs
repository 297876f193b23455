//! The reduction of angles to the quadrant around 0.

use std::f64::consts::FRAC_2_PI;

use super::arithmetic::{Arithmetic, sign_of};
use super::coefficients::{HALF_PI_DOUBLE, HALF_PI_SINGLE};
use super::double_word::{Parts, times_constant, two_product, two_sum};
use super::two_over_pi::{TWO_OVER_PI_DOUBLE, TWO_OVER_PI_SINGLE};

/// A magnitude taken apart as `quadrant·π/2 + r` with `|r|` at most a little over `π/4`.
pub(super) struct Reduced<A: Arithmetic> {
    /// The low bits are those of the quadrant.
    pub(super) quadrant: A::Int,
    pub(super) r: A,
}

/// Reduces a magnitude. Up to a limit by [`subtract_multiples`], beyond by [`multiply_by_two_over_pi`]; NaN where it is infinite.
#[inline]
pub(super) fn reduce<A: Arithmetic>(magnitude: &A) -> Reduced<A> {
    let limit = magnitude.constant(magnitude.precision().pick(1e5, 1e9));
    let is_large = limit.less(magnitude);
    let [rounded, r] =
        A::choose(&is_large, || multiply_by_two_over_pi(magnitude), || subtract_multiples(magnitude));
    Reduced { quadrant: rounded.to_bits(), r }
}

/// Cody and Waite's reduction ("Software manual for the elementary functions", 1980) with `π/2` in three parts: the quadrant's
/// number with a magic number added, and `r`. Each product is exact before it is subtracted, because multiplication and
/// subtraction are fused.
#[inline]
fn subtract_multiples<A: Arithmetic>(magnitude: &A) -> [A; 2] {
    let precision = magnitude.precision();
    let magic = magnitude.constant(precision.magic());
    let rounded = magnitude.mul_add(&magnitude.constant(FRAC_2_PI), &magic);
    let n = rounded.sub(&magic);
    let parts = precision.pick(HALF_PI_SINGLE, HALF_PI_DOUBLE);
    let r = parts.iter().fold(magnitude.clone(), |r, &part| n.mul_add(&r.constant(-part), &r));
    [rounded, r]
}

/// How large angles of a precision are reduced.
struct Layout {
    /// Exponents from this one on are divided into groups, stored with their bias.
    first_exponent: i64,
    /// A group has two to this power of them.
    group_bits: u32,
    /// There are two to this power of groups.
    count_bits: u32,
    /// The parts of `2/π`; see the table.
    table: &'static [&'static [f64]],
    /// As many terms of the product can be above 4.
    large_terms: usize,
}

static SINGLE: Layout = Layout {
    first_exponent: 127 + 7,
    group_bits: 4,
    count_bits: 3,
    table: &[&TWO_OVER_PI_SINGLE[0], &TWO_OVER_PI_SINGLE[1], &TWO_OVER_PI_SINGLE[2], &TWO_OVER_PI_SINGLE[3]],
    large_terms: 3,
};

static DOUBLE: Layout = Layout {
    first_exponent: 1023 + 20,
    group_bits: 6,
    count_bits: 4,
    table: &[
        &TWO_OVER_PI_DOUBLE[0],
        &TWO_OVER_PI_DOUBLE[1],
        &TWO_OVER_PI_DOUBLE[2],
        &TWO_OVER_PI_DOUBLE[3],
        &TWO_OVER_PI_DOUBLE[4],
    ],
    large_terms: 5,
};

/// Payne and Hanek's reduction ("Radian reduction for trigonometric functions", SIGNUM 18, 1983): `x·2/π` modulo 4, for which
/// only some digits of `2/π` matter. Exponents are divided into groups, and `2/π` is stored for each, scaled by the
/// group's power of two, without what gives multiples of 4, and in parts of the precision. Selections by the bits of
/// the group's number choose the parts, since neither vectors nor programs have tables.
#[inline]
fn multiply_by_two_over_pi<A: Arithmetic>(magnitude: &A) -> [A; 2] {
    let precision = magnitude.precision();
    let layout = precision.pick(&SINGLE, &DOUBLE);
    let (scaled, terms) = product_terms(magnitude, layout);
    let (large, small) = terms.split_at(layout.large_terms);

    // The large terms, modulo 4, and the errors of their sum.
    let mut errors = Vec::with_capacity(large.len());
    let mut sum = modulo_four(&large[0]);
    for term in &large[1..] {
        let (next, error) = two_sum(&sum, &modulo_four(term));
        errors.push(error);
        sum = next;
    }
    let magic = scaled.constant(precision.magic());
    let rounded = sum.add(&magic);
    let mut fraction = sum.sub(&rounded.sub(&magic));

    // The remaining terms can cancel, so that only the last ones need no error of their own.
    let mut low: Option<A> = None;
    let (first, last) = small.split_at(2);
    for term in first.iter().chain(&errors) {
        let (next, error) = two_sum(&fraction, term);
        fraction = next;
        low = Some(low.map_or(error.clone(), |low| low.add(&error)));
    }
    let low = last.iter().fold(low.expect("there are small terms"), |low, term| low.add(term));

    let half_pi = precision.pick(HALF_PI_SINGLE, HALF_PI_DOUBLE);
    let (r, error) = times_constant(&fraction, Parts { high: half_pi[0], low: half_pi[1] });
    [rounded, r.add(&low.mul_add(&low.constant(half_pi[0]), &error))]
}

/// The magnitude without its group's power of two, and its products with the parts of `2/π`, each exact as two terms but the last,
/// in descending order.
#[inline]
fn product_terms<A: Arithmetic>(magnitude: &A, layout: &Layout) -> (A, Vec<A>) {
    let precision = magnitude.precision();
    let mantissa_bits = precision.mantissa_bits();
    let lowest_bit = mantissa_bits + layout.group_bits;
    let first = magnitude.integer(layout.first_exponent << mantissa_bits);
    let exponent = A::int_sub(&magnitude.to_bits(), &first);

    let mask = magnitude.integer(((1 << layout.count_bits) - 1) << lowest_bit);
    let one = magnitude.integer(precision.one_bits());
    let scale = A::from_bits(&A::int_sub(&one, &A::int_and(&exponent, &mask)));
    let scaled = magnitude.mul(&scale);

    let is_even: Vec<A::Mask> = (0..layout.count_bits)
        .map(|bit| A::is_zero(&A::int_and(&exponent, &magnitude.integer(1 << (lowest_bit + bit)))))
        .collect();
    let mut terms = Vec::with_capacity(2 * layout.table.len());
    for (position, values) in layout.table.iter().enumerate() {
        let part = select_constant(magnitude, values, &is_even);
        if position + 1 == layout.table.len() {
            terms.push(scaled.mul(&part));
        } else {
            let (product, error) = two_product(&scaled, &part);
            terms.extend([product, error]);
        }
    }
    (scaled, terms)
}

/// The constant whose position has these bits, the lowest first. The masks hold where a bit is 0.
fn select_constant<A: Arithmetic>(like: &A, values: &[f64], is_even: &[A::Mask]) -> A {
    let Some((mask, lower)) = is_even.split_last() else { return like.constant(values[0]) };
    let (first, second) = values.split_at(values.len() / 2);
    let (first, second) = (select_constant(like, first, lower), select_constant(like, second, lower));
    A::select(mask, &first, &second)
}

/// A term of a sum of which only the value modulo 4 matters, brought to a small number by subtracting a multiple of 4, exactly.
/// Beyond a power of two all numbers are such multiples.
#[inline]
fn modulo_four<A: Arithmetic>(term: &A) -> A {
    let precision = term.precision();
    let (magnitude, magic) = (term.abs(), term.constant(precision.magic()));
    // Of a positive number, so that the sum with the magic number has no digits behind the point.
    let quarters = magnitude.mul_add(&term.constant(0.25), &magic).sub(&magic);
    let remainder = quarters.mul_add(&term.constant(-4.0), &magnitude);
    let bound = term.constant(precision.pick(67_108_864.0, 36_028_797_018_963_968.0));
    // The difference is 0, but NaN for a product that is infinite.
    let small = A::select(&bound.less(&magnitude), &magnitude.sub(&magnitude), &remainder);
    A::from_bits(&A::int_xor(&small.to_bits(), &sign_of(term)))
}

//! How exact the functions are, against `f64` and against known values.

use super::scalar::{Real, cast};
use super::{Arithmetic, cos, erf, exp, ln, rsqrt, sigmoid, sin, tanh};
use crate::tensor::Random;

/// The distance of single-precision bit patterns that are tried: a prime.
const STEP: u32 = 4999;

/// The error in units of the last place that the exact value has in `f32`.
fn single_error(found: f32, exact: f64) -> f64 {
    if found.is_nan() && exact.is_nan() || f64::from(found) == exact {
        return 0.0;
    }
    let nearest = exact as f32;
    if nearest.is_infinite() || found.is_infinite() {
        return if found == nearest { 0.0 } else { f64::INFINITY };
    }
    let ulp = f64::from(nearest.abs().next_up()) - f64::from(nearest.abs());
    (f64::from(found) - exact).abs() / ulp
}

/// The error in units of the last place of the value taken for exact.
fn double_error(found: f64, exact: f64) -> f64 {
    if found == exact || found.is_nan() && exact.is_nan() {
        return 0.0;
    }
    if found.is_infinite() || exact.is_infinite() {
        return f64::INFINITY;
    }
    let ulp = exact.abs().next_up() - exact.abs();
    (found - exact).abs() / ulp
}

/// The greatest error over all bit patterns at a distance of [`STEP`] whose magnitude is at most `limit`.
#[track_caller]
fn check_single(found: fn(&f32) -> f32, exact: fn(f64) -> f64, limit: f32, bound: f64) {
    let (mut greatest, mut at) = (0.0, 0.0);
    for bits in (0..=u32::MAX).step_by(STEP as usize) {
        let x = f32::from_bits(bits);
        if x.is_nan() || x.abs() > limit {
            continue;
        }
        let error = single_error(found(&x), exact(f64::from(x)));
        if error > greatest {
            (greatest, at) = (error, x);
        }
    }
    assert!(greatest <= bound, "error of {greatest} units at {at:e}, where {} was found", found(&at));
}

/// The greatest error over random arguments uniform in `low..high`.
#[track_caller]
fn check_double(found: fn(&f64) -> f64, exact: fn(f64) -> f64, (low, high): (f64, f64), bound: f64) {
    let mut random = Random::new(1);
    let (mut greatest, mut at) = (0.0, 0.0);
    for _ in 0..200_000 {
        let x = low + (high - low) * (random.unit() + 1.0) / 2.0;
        let error = double_error(found(&x), exact(x));
        if error > greatest {
            (greatest, at) = (error, x);
        }
    }
    assert!(greatest <= bound, "error of {greatest} units at {at:e}, where {} was found", found(&at));
}

/// The error function by its series of positive terms (Abramowitz and Stegun, 7.1.6).
fn erf_series(x: f64) -> f64 {
    if x.abs() > 6.0 {
        return x.signum();
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        term *= 2.0 * x * x / f64::from(2 * n + 1);
        sum += term;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

fn logistic(x: f64) -> f64 {
    if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) }
}

#[test]
fn single_precision_errors_are_as_documented() {
    check_single(exp, f64::exp, f32::INFINITY, 1.0);
    check_single(ln, f64::ln, f32::INFINITY, 0.8);
    check_single(tanh, f64::tanh, f32::INFINITY, 2.6);
    check_single(sigmoid, logistic, f32::INFINITY, 2.3);
    check_single(erf, erf_series, f32::INFINITY, 1.3);
    check_single(rsqrt, |x| 1.0 / x.sqrt(), f32::INFINITY, 1.5);
    check_single(sin, f64::sin, 1e5, 1.6);
    check_single(cos, f64::cos, 1e5, 1.6);
}

#[test]
fn double_precision_errors_are_as_documented() {
    check_double(exp, f64::exp, (-745.5, 710.0), 1.0);
    check_double(exp, f64::exp, (-1.0, 1.0), 1.0);
    check_double(ln, f64::ln, (0.0, 4.0), 1.0);
    check_double(ln, f64::ln, (0.0, 1e300), 1.0);
    check_double(tanh, f64::tanh, (-25.0, 25.0), 4.0);
    check_double(tanh, f64::tanh, (-1.0, 1.0), 4.0);
    check_double(sigmoid, logistic, (-740.0, 40.0), 2.0);
    check_double(rsqrt, |x| 1.0 / x.sqrt(), (0.0, 1e10), 1.0);
    for function in [(sin as fn(&f64) -> f64, f64::sin as fn(f64) -> f64), (cos, f64::cos)] {
        check_double(function.0, function.1, (-10.0, 10.0), 2.0);
        check_double(function.0, function.1, (-1e9, 1e9), 2.0);
    }
}

/// Values from 40-digit arithmetic, rounded.
#[test]
fn double_precision_error_function_matches_known_values() {
    let known = [
        (1e-300, 1.1283791670955126e-300),
        (1e-08, 1.1283791670955126e-08),
        (0.1, 0.1124629160182849),
        (0.25, 0.27632639016823696),
        (0.5, 0.5204998778130465),
        (0.75, 0.7111556336535151),
        (0.875, 0.7840750610598597),
        (0.96875, 0.8293191505933152),
        (0.9999, 0.8426592780487595),
        (1.0, 0.8427007929497149),
        (1.0625, 0.8670582694349528),
        (1.25, 0.9229001282564583),
        (1.5, 0.9661051464753108),
        (1.75, 0.9866716712191824),
        (2.0, 0.9953222650189527),
        (2.5, 0.999593047982555),
        (3.0, 0.9999779095030014),
        (3.5, 0.9999992569016276),
        (4.0, 0.9999999845827421),
        (4.5, 0.9999999998033839),
        (5.0, 0.9999999999984626),
        (5.5, 0.9999999999999927),
        (5.75, 0.9999999999999996),
        (6.0, 1.0),
    ];
    for (x, exact) in known {
        let error = double_error(erf(&x), exact);
        assert!(error <= 2.0, "error of {error} units at {x}");
        assert_eq!(erf(&-x), -erf(&x), "{x}");
    }
}

#[track_caller]
fn check_special<T: Real + Arithmetic>(name: &str, found: T, expected: f64) {
    let found = found.to_f64();
    let equal = if expected.is_nan() { found.is_nan() } else { found == expected };
    assert!(
        equal && (expected != 0.0 || found.is_sign_negative() == expected.is_sign_negative()),
        "{name} gave {found} for {}, expected {expected}",
        T::DTYPE
    );
}

fn check_special_values<T: Real + Arithmetic>() {
    let [inf, nan] = [f64::INFINITY, f64::NAN];
    let x = |value: f64| T::from_f64(value);
    for (argument, expected) in [(inf, inf), (-inf, 0.0), (0.0, 1.0), (1e4, inf), (-1e4, 0.0), (nan, nan)] {
        check_special("exp", exp(&x(argument)), expected);
    }
    for (argument, expected) in
        [(inf, inf), (0.0, -inf), (-0.0, -inf), (-1.0, nan), (-inf, nan), (1.0, 0.0), (nan, nan)]
    {
        check_special("ln", ln(&x(argument)), expected);
    }
    for (argument, expected) in [(inf, 1.0), (-inf, -1.0), (0.0, 0.0), (-0.0, -0.0), (100.0, 1.0), (nan, nan)]
    {
        check_special("tanh", tanh(&x(argument)), expected);
        check_special("erf", erf(&x(argument)), expected);
    }
    for (argument, expected) in [(inf, 1.0), (-inf, 0.0), (0.0, 0.5), (nan, nan)] {
        check_special("sigmoid", sigmoid(&x(argument)), expected);
    }
    for (argument, expected) in [(inf, nan), (-inf, nan), (1e14, nan), (0.0, 0.0), (-0.0, -0.0), (nan, nan)] {
        check_special("sin", sin(&x(argument)), expected);
    }
    for (argument, expected) in [(inf, nan), (1e14, nan), (0.0, 1.0), (-0.0, 1.0), (nan, nan)] {
        check_special("cos", cos(&x(argument)), expected);
    }
    for (argument, expected) in [(inf, 0.0), (0.0, inf), (-0.0, -inf), (-1.0, nan), (4.0, 0.5), (nan, nan)] {
        check_special("rsqrt", rsqrt(&x(argument)), expected);
    }
}

#[test]
fn special_values_give_special_values() {
    check_special_values::<f32>();
    check_special_values::<f64>();
}

#[test]
fn sine_and_cosine_stay_bounded_between_their_ranges() {
    let mut random = Random::new(2);
    for _ in 0..50_000 {
        let x = (random.unit() * 4_194_304.0) as f32;
        let error = (f64::from(sin(&x)) - f64::from(x).sin()).abs();
        assert!(error < 1e-5, "error of {error:e} at {x:e}");
        let error = (f64::from(cos(&x)) - f64::from(x).cos()).abs();
        assert!(error < 1e-5, "error of {error:e} at {x:e}");
    }
}

#[test]
fn half_precision_rounds_the_single_result() {
    for bits in 0..=u16::MAX {
        let x = half::f16::from_bits(bits);
        let (found, expected) = (Real::tanh(x), half::f16::from_f32(x.to_f32().tanh()));
        let close = (found.to_f32() - expected.to_f32()).abs() <= 2f32.powi(-11) * expected.to_f32().abs();
        assert!(close || x.is_nan() && found.is_nan() || found == expected, "tanh of {x} gave {found}");
        let wide: f32 = cast(x);
        assert_eq!(found.to_bits(), cast::<f32, half::f16>(Real::tanh(wide)).to_bits(), "{x}");
    }
}

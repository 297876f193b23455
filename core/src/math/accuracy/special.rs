//! Special values of every function.

use super::super::{
    Arithmetic, acos, asin, atan, atan2, cos, cosh, erf, exp, exp_m1, exp2, ln, ln_1p, log2, log10, powf,
    rsqrt, sigmoid, sin, sinh, tan, tanh,
};
use super::Real;

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;
const PI: f64 = std::f64::consts::PI;

/// Values of a function of one operand. Zeros are compared with their signs.
fn check<T: Real + Arithmetic>(name: &str, function: fn(&T) -> T, values: &[(f64, f64)]) {
    for &(argument, expected) in values {
        let found = function(&T::from_f64(argument));
        compare(&format!("{name}({argument:?})"), found, expected);
    }
}

/// A function of one operand.
type Function<T> = fn(&T) -> T;

fn compare<T: Real + Arithmetic>(call: &str, found: T, expected: f64) {
    let expected = T::from_f64(expected).to_f64();
    let found = found.to_f64();
    let equal = if expected.is_nan() { found.is_nan() } else { found == expected };
    let same_sign = expected != 0.0 || found.is_sign_negative() == expected.is_sign_negative();
    assert!(equal && same_sign, "{call} gave {found:?} for {}, expected {expected:?}", T::DTYPE);
}

fn check_functions_of_one_operand<T: Real + Arithmetic>() {
    let same = [(0.0, 0.0), (-0.0, -0.0), (NAN, NAN)];
    let odd_function: [(&str, Function<T>); 9] = [
        ("tanh", tanh),
        ("erf", erf),
        ("sin", sin),
        ("tan", tan),
        ("asin", asin),
        ("atan", atan),
        ("sinh", sinh),
        ("exp_m1", exp_m1),
        ("ln_1p", ln_1p),
    ];
    for (name, function) in odd_function {
        check(name, function, &same);
        // Denormal numbers stay as they are, but for the factor of the error function.
        let tiny = if T::DTYPE.bytes() == 4 { 3.0 * 2f64.powi(-149) } else { 3.0 * 2f64.powi(-1074) };
        check(name, function, &[(tiny, tiny), (-tiny, -tiny)]);
    }
    check::<T>("exp", exp, &[(INF, INF), (-INF, 0.0), (0.0, 1.0), (1e4, INF), (-1e4, 0.0), (NAN, NAN)]);
    check::<T>("exp2", exp2, &[(INF, INF), (-INF, 0.0), (3.0, 8.0), (1e4, INF), (-1e4, 0.0), (NAN, NAN)]);
    check::<T>("exp2", exp2, &[(-10.0, 2f64.powi(-10)), (-149.0, 2f64.powi(-149)), (127.0, 2f64.powi(127))]);
    check::<T>("exp_m1", exp_m1, &[(INF, INF), (-INF, -1.0), (-1e4, -1.0), (1e4, INF)]);
    let logarithms: [(&str, Function<T>); 3] = [("ln", ln), ("log2", log2), ("log10", log10)];
    for (name, function) in logarithms {
        let values =
            [(INF, INF), (0.0, -INF), (-0.0, -INF), (-1.0, NAN), (-INF, NAN), (1.0, 0.0), (NAN, NAN)];
        check(name, function, &values);
    }
    check::<T>("log2", log2, &[(8.0, 3.0), (2f64.powi(-149), -149.0), (2f64.powi(100), 100.0)]);
    check::<T>("log10", log10, &[(10.0, 1.0), (1000.0, 3.0)]);
    check::<T>("ln_1p", ln_1p, &[(INF, INF), (-1.0, -INF), (-2.0, NAN), (-INF, NAN)]);
    check::<T>("tanh", tanh, &[(INF, 1.0), (-INF, -1.0), (100.0, 1.0)]);
    check::<T>("erf", erf, &[(INF, 1.0), (-INF, -1.0), (100.0, 1.0)]);
    check::<T>("sinh", sinh, &[(INF, INF), (-INF, -INF), (1e4, INF)]);
    check::<T>("cosh", cosh, &[(INF, INF), (-INF, INF), (0.0, 1.0), (-1e4, INF), (NAN, NAN)]);
    check::<T>("sigmoid", sigmoid, &[(INF, 1.0), (-INF, 0.0), (0.0, 0.5), (NAN, NAN)]);
    check::<T>("sin", sin, &[(INF, NAN), (-INF, NAN)]);
    check::<T>("tan", tan, &[(INF, NAN), (-INF, NAN)]);
    check::<T>("cos", cos, &[(INF, NAN), (-INF, NAN), (0.0, 1.0), (-0.0, 1.0), (NAN, NAN)]);
    check::<T>("rsqrt", rsqrt, &[(INF, 0.0), (0.0, INF), (-0.0, -INF), (-1.0, NAN), (4.0, 0.5), (NAN, NAN)]);
    check::<T>("asin", asin, &[(1.0, PI / 2.0), (-1.0, -PI / 2.0), (1.001, NAN), (INF, NAN)]);
    check::<T>(
        "acos",
        acos,
        &[(1.0, 0.0), (-1.0, PI), (0.0, PI / 2.0), (-1.001, NAN), (INF, NAN), (NAN, NAN)],
    );
    check::<T>("atan", atan, &[(INF, PI / 2.0), (-INF, -PI / 2.0), (1.0, PI / 4.0)]);
}

#[test]
fn functions_of_one_operand_have_their_special_values() {
    check_functions_of_one_operand::<f32>();
    check_functions_of_one_operand::<f64>();
}

/// Zeros, infinities, NaN and powers of two, for which both functions have the values that IEEE 754-2019 (9.2.1) gives; `libm`
/// has them, too.
fn check_functions_of_two_operands<T: Real + Arithmetic>() {
    let values = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 1e30, -1e30, INF, -INF, NAN];
    let values = values.into_iter().chain([16_777_215.0, -16_777_217.0]).map(T::from_f64);
    for x in values.clone() {
        for y in values.clone() {
            let (a, b) = (x.to_f64(), y.to_f64());
            let is_exact = [a, b].iter().any(|v| *v == 0.0 || !v.is_finite()) || a.abs() == b.abs();
            if is_exact || b.fract() == 0.0 && a.abs() <= 2.0 && a.fract() == 0.0 {
                compare(&format!("powf({a:?}, {b:?})"), powf(&x, &y), libm::pow(a, b));
            }
            if is_exact {
                compare(&format!("atan2({a:?}, {b:?})"), atan2(&x, &y), libm::atan2(a, b));
            }
        }
    }
}

#[test]
fn functions_of_two_operands_have_their_special_values() {
    check_functions_of_two_operands::<f32>();
    check_functions_of_two_operands::<f64>();
}

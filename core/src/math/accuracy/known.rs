//! Values from arithmetic with thousands of digits, rounded to `f64`.

use super::super::{cos, erf, powf, sin, tan};
use super::double_error;

#[test]
fn the_error_function_has_known_values() {
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

/// Angles with their sine, cosine and tangent, among them the `f64` next to a multiple of `π/2`.
#[expect(clippy::approx_constant, reason = "arguments of functions, not constants by name")]
const ANGLES: [(f64, f64, f64, f64); 8] = [
    (1e+22, -0.8522008497671888, 0.523214785395139, -1.6287782256068988),
    (1.0715086071862673e+301, -0.15920170308624243, 0.9872460775989135, -0.16125837995065806),
    (1.7976931348623157e+308, 0.004961954789184062, -0.9999876894265599, -0.004962015874444895),
    (5.319372648326541e+255, 1.0, -4.687165924254628e-19, -2.133485385753704e+18),
    (3.141592653589793, 1.2246467991473532e-16, -1.0, -1.2246467991473532e-16),
    (1000000000.0, 0.5458434494486996, 0.8378871813639024, 0.6514522021451413),
    (123456789.125, 0.9998763854272629, 0.01572303612257408, 63.59308581576732),
    (1.1529215046068472e+18, 0.5894072823761655, -0.8078360325474119, -0.7296125186661232),
];

#[test]
fn angles_of_all_sizes_have_known_functions() {
    for (angle, sine, cosine, tangent) in ANGLES {
        for (found, exact) in [(sin(&angle), sine), (cos(&angle), cosine), (tan(&angle), tangent)] {
            let error = double_error(found, exact);
            assert!(error <= 3.0, "error of {error} units at {angle:e}: {found:e} for {exact:e}");
        }
    }
}

/// Bases and exponents of powers near the limits.
#[expect(clippy::approx_constant, reason = "arguments of functions, not constants by name")]
const POWERS: [(f64, f64, f64); 8] = [
    (0.7071067811865476, 2000.5, 7.847780312861743e-302),
    (1.4142135623730951, -2040.25, 8.16160689871935e-308),
    (1.0000000000000002, 4500000000000000.0, 2.716110034087036),
    (3.0, 644.0, 1.8453894755814917e+307),
    (1e-300, -1.02, 1.0000000000000122e+306),
    (0.9999, 7000000.0, 9.520534857662686e-305),
    (1.3, 2600.7, 2.1501875574683004e+296),
    (2.5, -800.25, 3.536e-319),
];

#[test]
fn powers_near_the_limits_are_known() {
    for (base, exponent, exact) in POWERS {
        let error = double_error(powf(&base, &exponent), exact);
        assert!(error <= 1.0, "error of {error} units for {base:e} to the power of {exponent}");
    }
}

//! The polynomials' coefficients, lowest power first.
//!
//! They were fitted for this crate in 50-digit arithmetic, by least squares at Chebyshev nodes whose
//! weights follow Lawson's iteration (C. L. Lawson, 1961), which tends to the minimax polynomial; the
//! program is `fit.py` in this directory, which says how a ratio of polynomials is fitted. Each table states the error of the fit, before rounding.
//!
//! Constants in parts are the nearest number of the precision, then what is left of the exact value.

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, LN_2, LOG2_E, LOG10_2, LOG10_E};

/// `ln(2)` in two parts.
pub(super) const LN_2_SINGLE: (f64, f64) = (LN_2 as f32 as f64, -1.904_654_212_125_933_6e-9);

/// `ln(2)` in two parts.
pub(super) const LN_2_DOUBLE: (f64, f64) = (LN_2, 2.319_046_813_846_299_6e-17);

/// `π/2` in three parts.
pub(super) const HALF_PI_SINGLE: [f64; 3] =
    [FRAC_PI_2 as f32 as f64, -4.371_138_828_673_793e-8, -1.715_124_510_005_881_9e-15];

/// `π/2` in three parts.
pub(super) const HALF_PI_DOUBLE: [f64; 3] =
    [FRAC_PI_2, 6.123_233_995_736_766e-17, -1.497_384_904_859_169_8e-33];

/// `(e^r - 1 - r) / r²` for `|r| ≤ 1.01·ln(2)/2`, relative to `e^r`: 2^-28.2.
pub(super) const EXP_SINGLE: &[f64] =
    &[4.999999271e-1, 1.666651512e-1, 4.166855201e-2, 8.369374852e-3, 1.380753831e-3];

/// `(e^r - 1 - r) / r²` for `|r| ≤ 1.01·ln(2)/2`, relative to `e^r`: 2^-63.9.
pub(super) const EXP_DOUBLE: &[f64] = &[
    0.5,
    0.16666666666666685,
    0.04166666666666604,
    0.008333333333315726,
    0.0013888888889131657,
    0.0001984126989966167,
    2.4801586908760163e-05,
    2.755723154810274e-06,
    2.755758818435914e-07,
    2.5113203833148092e-08,
    2.0826922843339584e-09,
];

/// `(2·atanh(s)/s - 2) / z` with `z = s²`, for `|s| ≤ (√2 - 1)/(√2 + 1)`, relative to the logarithm: 2^-30.2.
pub(super) const LN_SINGLE: &[f64] = &[6.666678073e-1, 3.997698307e-1, 2.988718926e-1];

/// `(2·atanh(s)/s - 2) / z` with `z = s²`, for `|s| ≤ (√2 - 1)/(√2 + 1)`, relative to the logarithm: 2^-59.4.
pub(super) const LN_DOUBLE: &[f64] = &[
    0.6666666666666738,
    0.3999999999938025,
    0.28571428750879546,
    0.2222219762499605,
    0.1818361726546923,
    0.15312609325536605,
    0.1481118048996661,
];

/// `(sin(r)/r - 1) / z` with `z = r²`, for `|r| ≤ 0.83`, relative to the sine: 2^-27.4.
pub(super) const SIN_SINGLE: &[f64] = &[-1.666665034e-1, 8.331893343e-3, -1.947973469e-4];

/// `(sin(r)/r - 1) / z` with `z = r²`, for `|r| ≤ 0.83`, relative to the sine: 2^-56.9.
pub(super) const SIN_DOUBLE: &[f64] = &[
    -0.16666666666666602,
    0.008333333333314636,
    -0.00019841269823601105,
    2.7557311563813402e-06,
    -2.5050430504243148e-08,
    1.5878188351030543e-10,
];

/// `(cos(r) - 1 + z/2) / z²` with `z = r²`, for `|r| ≤ 0.83`, absolute: 2^-32.5.
pub(super) const COS_SINGLE: &[f64] = &[4.166663982e-2, -1.388701959e-3, 2.439874126e-5];

/// `(cos(r) - 1 + z/2) / z²` with `z = r²`, for `|r| ≤ 0.83`, absolute: 2^-62.9.
pub(super) const COS_DOUBLE: &[f64] = &[
    0.04166666666666655,
    -0.0013888888888865137,
    2.4801587283687557e-05,
    -2.7557312654687563e-07,
    2.0875491904467617e-09,
    -1.134772937946642e-11,
];

/// `erf(a)/a - 1` with `z = a²`, for `a ≤ 1`, relative to the error function: 2^-29.7.
pub(super) const ERF_SMALL_SINGLE: &[f64] = &[
    1.283791659e-1,
    -3.76126271e-1,
    1.128359978e-1,
    -2.685442859e-2,
    5.189506051e-3,
    -8.020592014e-4,
    7.88831867e-5,
];

/// `erf(a)/a - 1` with `z = a²`, for `a ≤ 1`, relative to the error function: 2^-62.8.
pub(super) const ERF_SMALL_DOUBLE: &[f64] = &[
    0.1283791670955126,
    -0.3761263890318375,
    0.11283791670954885,
    -0.02686617064507779,
    0.005223977624827647,
    -0.0008548326981382297,
    0.00012055331131438558,
    -1.4925595737053855e-05,
    1.64610079341577e-06,
    -1.635039065537382e-07,
    1.4660292506168747e-08,
    -1.1374820204274365e-09,
    5.960463153459181e-11,
];

/// `√(1 - erf(1 + b))` for `b ≤ 3`, numerator and denominator, as an absolute error of the error function: 2^-26.9.
pub(super) const ERF_LARGE_SINGLE: (&[f64], &[f64]) = (
    &[3.9660963e-1, -4.941972184e-1, 2.383690463e-1, -5.27126075e-2, 4.503154134e-3],
    &[1.0, 7.342673042e-2, 2.489747326e-1, 9.872178193e-3, 2.123642944e-2],
);

/// `-ln(1 - erf(a))` for `a` from 0.95 to 5.95, as an absolute error of the error function: 2^-58.9.
pub(super) const ERF_LARGE_DOUBLE: &[f64] = &[
    1.1816297764004677e-07,
    1.128377934380809,
    0.636625712377186,
    0.10275513911222228,
    -0.019093694232014867,
    -0.0002579431654909326,
    0.001744038424454307,
    -0.0006196110313242562,
    3.0094783013691866e-05,
    7.83803427372505e-05,
    -4.851897673262724e-05,
    1.7718753593651842e-05,
    -4.656660168397467e-06,
    9.209007692796015e-07,
    -1.371492678781135e-07,
    1.4997346819816117e-08,
    -1.1394752247848946e-09,
    5.380182143478468e-11,
    -1.1892415473269361e-12,
];

/// `π/4` in two parts.
pub(super) const QUARTER_PI_SINGLE: (f64, f64) = (FRAC_PI_4 as f32 as f64, -2.185_569_414_336_896_4e-8);

/// `π/4` in two parts.
pub(super) const QUARTER_PI_DOUBLE: (f64, f64) = (FRAC_PI_4, 3.061_616_997_868_383e-17);

/// `(atan(t)/t - 1) / z` with `z = t²`, for `|t| ≤ tan(π/8)`, relative to the arc tangent: 2^-30.4.
pub(super) const ATAN_SINGLE: &[f64] =
    &[-3.333331485e-1, 1.99984451e-1, -1.424293817e-1, 1.058876852e-1, -6.063955537e-2];

/// `(atan(t)/t - 1) / z` with `z = t²`, for `|t| ≤ tan(π/8)`, relative to the arc tangent: 2^-59.3.
pub(super) const ATAN_DOUBLE: &[f64] = &[
    -0.33333333333333187,
    0.1999999999995079,
    -0.14285714279876752,
    0.11111110765979121,
    -0.09090897219969898,
    0.07692050121703851,
    -0.06662984125549169,
    0.058469833963760535,
    -0.05035088847010114,
    0.037954382649083504,
    -0.01778350677489602,
];

/// `(asin(s)/s - 1) / z` with `z = s²`, for `|s| ≤ ½`, relative to the arc sine: 2^-27.6.
pub(super) const ASIN_SINGLE: &[f64] =
    &[1.666675216e-1, 7.495299926e-2, 4.547089336e-2, 2.417433889e-2, 4.217825282e-2];

/// `(asin(s)/s - 1) / z` with `z = s²`, for `|s| ≤ ½`, relative to the arc sine: 2^-59.8.
pub(super) const ASIN_DOUBLE: &[f64] = &[
    0.1666666666666676,
    0.07499999999970589,
    0.04464285717489741,
    0.03038194269149115,
    0.022372215498212694,
    0.01735160215502131,
    0.013980945078497115,
    0.011397852084478445,
    0.010786383113298742,
    0.003682659741619947,
    0.021766459747308377,
    -0.02108408330688218,
    0.03268262509669422,
];

/// `(2·atanh(s)/s - 2 - 2·z/3) / z²` with `z = s²`, for `|s| ≤ (√2 - 1)/(√2 + 1)`, relative to the logarithm: 2^-36.6.
pub(super) const LONG_LN_SINGLE: &[f64] = &[4.000014517e-1, 2.854763284e-1, 2.341031436e-1];

/// `(2·atanh(s)/s - 2 - 2·z/3) / z²` with `z = s²`, for `|s| ≤ (√2 - 1)/(√2 + 1)`, relative to the logarithm: 2^-72.6.
pub(super) const LONG_LN_DOUBLE: &[f64] = &[
    0.39999999999999997,
    0.2857142857143418,
    0.22222222219856594,
    0.18181818619517892,
    0.1538457207136398,
    0.13335794077240834,
    0.11684385596053243,
    0.11916870148102249,
];

/// `ln(2)` in two parts, of which the first has 16 digits: its product with an exponent is exact.
pub(super) const SHORT_LN_2_SINGLE: (f64, f64) = (0.693_145_751_953_125, 1.428_606_765_330_187e-6);

/// `ln(2)` in two parts, of which the first has 42 digits.
pub(super) const SHORT_LN_2_DOUBLE: (f64, f64) = (0.693_147_180_559_890_3, 5.497_923_018_708_371e-14);

/// `log₂(e)` in two parts.
pub(super) const LOG2_E_SINGLE: (f64, f64) = (LOG2_E as f32 as f64, 1.925_963_033_500_011e-8);

/// `log₂(e)` in two parts.
pub(super) const LOG2_E_DOUBLE: (f64, f64) = (LOG2_E, 2.035_527_374_093_103_3e-17);

/// `log₁₀(2)` in two parts.
pub(super) const LOG10_2_SINGLE: (f64, f64) = (LOG10_2 as f32 as f64, -1.432_098_883_924_482e-8);

/// `log₁₀(2)` in two parts.
pub(super) const LOG10_2_DOUBLE: (f64, f64) = (LOG10_2, -2.803_728_127_785_170_4e-18);

/// `log₁₀(e)` in two parts.
pub(super) const LOG10_E_SINGLE: (f64, f64) = (LOG10_E as f32 as f64, -1.010_304_995_219_257_8e-8);

/// `log₁₀(e)` in two parts.
pub(super) const LOG10_E_DOUBLE: (f64, f64) = (LOG10_E, 1.098_319_650_216_765e-17);

/// `⅔` in two parts.
pub(super) const TWO_THIRDS_SINGLE: (f64, f64) = ((2.0 / 3.0) as f32 as f64, -1.986_821_551_724_915_5e-8);

/// `⅔` in two parts.
pub(super) const TWO_THIRDS_DOUBLE: (f64, f64) = (2.0 / 3.0, 3.700_743_415_417_188e-17);

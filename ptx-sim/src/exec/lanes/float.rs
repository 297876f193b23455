//! Arithmetic of `f32` and `f64`.
//!
//! Results that are not a number are `0x7fffffff` in `f32`, as on the hardware.

use crate::exec::lanes::mode::Mode;
use crate::exec::lanes::small::{F32, Rounding, odd};
use crate::exec::lanes::{LaneValue, Pure, pure};

/// A number of `f32` whose results have the hardware's bits for not a number.
#[derive(Clone, Copy)]
struct Plain(f32);

/// The same, with subnormal sources and results flushed to zero.
#[derive(Clone, Copy)]
struct Flushed(f32);

/// Not a number, as the hardware gives it.
const NAN: u32 = 0x7fff_ffff;

/// The bits of a result. They are chosen as integers: a compiler may replace one not-a-number by another.
#[inline(always)]
pub(crate) fn canonical(value: f32) -> u32 {
    if value.is_nan() { NAN } else { value.to_bits() }
}

/// Makes subnormal numbers zero, with their sign.
#[inline(always)]
pub(crate) fn flush(value: f32) -> f32 {
    if value.abs() < f32::MIN_POSITIVE { f32::from_bits(value.to_bits() & 0x8000_0000) } else { value }
}

impl LaneValue for Plain {
    #[inline(always)]
    fn of(bits: u64) -> Plain {
        Plain(<f32 as LaneValue>::of(bits))
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        u64::from(canonical(self.0))
    }
}

impl LaneValue for Flushed {
    #[inline(always)]
    fn of(bits: u64) -> Flushed {
        Flushed(flush(<f32 as LaneValue>::of(bits)))
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        u64::from(canonical(flush(self.0)))
    }
}

/// Evaluates an expression with `$T` as [`Flushed`] or [`Plain`].
macro_rules! with_single {
    ($flush:expr, $T:ident => $body:expr) => {
        if $flush {
            #[allow(dead_code)]
            type $T = Flushed;
            $body
        } else {
            #[allow(dead_code)]
            type $T = Plain;
            $body
        }
    };
}

/// Applies what a mode says about results.
pub(crate) fn finish(value: f64, mode: Mode) -> f32 {
    let rounded = f32::from_bits(F32.encode(value, mode.rounding, false));
    let rounded = if mode.flush { flush(rounded) } else { rounded };
    if mode.saturate { saturate(rounded) } else { rounded }
}

/// Clamps to `[0, 1]`; not a number becomes 0.
#[inline(always)]
pub(crate) fn saturate(value: f32) -> f32 {
    if value > 0.0 { value.min(1.0) } else { 0.0 }
}

fn source(value: f32, mode: Mode) -> f64 {
    f64::from(if mode.flush { flush(value) } else { value })
}

/// Sums, differences and products of `f32`; with a mode as third source where it is not plain.
pub(crate) fn binary(opcode: &str, mode: Mode) -> Option<Pure> {
    let plain = mode.rounding == Rounding::Nearest && !mode.saturate;
    if plain {
        return with_single!(mode.flush, T => Some(match opcode {
            "add" => pure!(|a: T, b: T| T::from(a.0 + b.0)),
            "sub" => pure!(|a: T, b: T| T::from(a.0 - b.0)),
            "mul" => pure!(|a: T, b: T| T::from(a.0 * b.0)),
            "div" => pure!(|a: T, b: T| T::from(a.0 / b.0)),
            _ => return None,
        }));
    }
    Some(match opcode {
        "add" => pure!(|a: f32, b: f32, m: u32| {
            let m = Mode::of(m);
            finish(sum(source(a, m), source(b, m), m), m)
        }),
        "sub" => pure!(|a: f32, b: f32, m: u32| {
            let m = Mode::of(m);
            finish(sum(source(a, m), -source(b, m), m), m)
        }),
        "mul" => pure!(|a: f32, b: f32, m: u32| {
            let m = Mode::of(m);
            finish(source(a, m) * source(b, m), m)
        }),
        "div" => pure!(|a: f32, b: f32, m: u32| {
            let m = Mode::of(m);
            finish(odd::divide(source(a, m), source(b, m)), m)
        }),
        _ => return None,
    })
}

/// A sum rounded to odd; an exact zero has the sign that the rounding gives it.
fn sum(a: f64, b: f64, mode: Mode) -> f64 {
    let sum = odd::add(a, b);
    if sum == 0.0 && mode.rounding == Rounding::Down && a != b {
        return -0.0;
    }
    sum
}

impl From<f32> for Plain {
    #[inline(always)]
    fn from(value: f32) -> Plain {
        Plain(value)
    }
}

impl From<f32> for Flushed {
    #[inline(always)]
    fn from(value: f32) -> Flushed {
        Flushed(value)
    }
}

/// `fma` and `mad` of `f32`; with a mode as fourth source where it is not plain.
pub(crate) fn multiply_add(mode: Mode) -> Pure {
    if mode.rounding == Rounding::Nearest && !mode.saturate {
        return with_single!(mode.flush, T => pure!(|a: T, b: T, c: T| T::from(a.0.mul_add(b.0, c.0))));
    }
    pure!(|a: f32, b: f32, c: f32, m: u32| {
        let m = Mode::of(m);
        finish(sum(source(a, m) * source(b, m), source(c, m), m), m)
    })
}

/// `neg` and `abs` of `f32`.
pub(crate) fn sign(opcode: &str, flush: bool) -> Option<Pure> {
    with_single!(flush, T => Some(match opcode {
        "neg" => pure!(|a: T| T::from(-a.0)),
        "abs" => pure!(|a: T| T::from(a.0.abs())),
        _ => return None,
    }))
}

/// The smaller of two; `-0` is smaller than `0`. The other one where one is not a number, unless `propagate`.
#[inline(always)]
pub(crate) fn minimum(a: f64, b: f64, propagate: bool) -> f64 {
    if a.is_nan() || b.is_nan() {
        return if propagate {
            f64::NAN
        } else if a.is_nan() {
            b
        } else {
            a
        };
    }
    if a < b || (a == b && a.is_sign_negative()) { a } else { b }
}

/// The larger of two, in the same manner.
#[inline(always)]
pub(crate) fn maximum(a: f64, b: f64, propagate: bool) -> f64 {
    if a.is_nan() || b.is_nan() {
        return if propagate {
            f64::NAN
        } else if a.is_nan() {
            b
        } else {
            a
        };
    }
    if a > b || (a == b && a.is_sign_positive()) { a } else { b }
}

#[inline(always)]
fn least(a: f32, b: f32) -> f32 {
    if a.is_nan() {
        b
    } else if b.is_nan() || a < b || (a == b && a.is_sign_negative()) {
        a
    } else {
        b
    }
}

#[inline(always)]
fn most(a: f32, b: f32) -> f32 {
    if a.is_nan() {
        b
    } else if b.is_nan() || a > b || (a == b && a.is_sign_positive()) {
        a
    } else {
        b
    }
}

/// `min` and `max` of `f32`: of the magnitudes, with the sign of the product, if `xor_sign_abs`.
pub(crate) fn extremum(opcode: &str, flush: bool, propagate: bool, xor_sign_abs: bool) -> Option<Pure> {
    with_single!(flush, T => Some(match (opcode, propagate, xor_sign_abs) {
        ("min", false, false) => pure!(|a: T, b: T| T::from(least(a.0, b.0))),
        ("max", false, false) => pure!(|a: T, b: T| T::from(most(a.0, b.0))),
        ("min", true, false) => pure!(|a: T, b: T| T::from(or_nan(a.0, b.0, least(a.0, b.0)))),
        ("max", true, false) => pure!(|a: T, b: T| T::from(or_nan(a.0, b.0, most(a.0, b.0)))),
        ("min", nan, true) => if nan {
            pure!(|a: T, b: T| T::from(or_nan(a.0, b.0, signed(a.0, b.0, least(a.0.abs(), b.0.abs())))))
        } else {
            pure!(|a: T, b: T| T::from(signed(a.0, b.0, least(a.0.abs(), b.0.abs()))))
        },
        ("max", nan, true) => if nan {
            pure!(|a: T, b: T| T::from(or_nan(a.0, b.0, signed(a.0, b.0, most(a.0.abs(), b.0.abs())))))
        } else {
            pure!(|a: T, b: T| T::from(signed(a.0, b.0, most(a.0.abs(), b.0.abs()))))
        },
        _ => return None,
    }))
}

#[inline(always)]
fn or_nan(a: f32, b: f32, value: f32) -> f32 {
    if a.is_nan() || b.is_nan() { f32::NAN } else { value }
}

/// A magnitude with the sign of a product.
fn signed(a: f32, b: f32, magnitude: f32) -> f32 {
    f32::from_bits(magnitude.to_bits() | (a.to_bits() ^ b.to_bits()) & 0x8000_0000)
}

/// `min` and `max` of three `f32` values.
pub(crate) fn extremum3(opcode: &str, flush: bool, propagate: bool) -> Option<Pure> {
    with_single!(flush, T => Some(match (opcode, propagate) {
        ("min", false) => pure!(|a: T, b: T, c: T| T::from(least(least(a.0, b.0), c.0))),
        ("max", false) => pure!(|a: T, b: T, c: T| T::from(most(most(a.0, b.0), c.0))),
        ("min", true) => pure!(|a: T, b: T, c: T| {
            T::from(or_nan(a.0, b.0, or_nan(c.0, c.0, least(least(a.0, b.0), c.0))))
        }),
        ("max", true) => pure!(|a: T, b: T, c: T| {
            T::from(or_nan(a.0, b.0, or_nan(c.0, c.0, most(most(a.0, b.0), c.0))))
        }),
        _ => return None,
    }))
}

/// `rcp` and `sqrt` of `f32`, correctly rounded; with a mode as second source where it is not plain.
pub(crate) fn root(opcode: &str, mode: Mode) -> Option<Pure> {
    if mode.rounding == Rounding::Nearest {
        return with_single!(mode.flush, T => Some(match opcode {
            "rcp" => pure!(|a: T| T::from(1.0 / a.0)),
            "sqrt" => pure!(|a: T| T::from(a.0.sqrt())),
            _ => return None,
        }));
    }
    Some(match opcode {
        "rcp" => pure!(|a: f32, m: u32| {
            let m = Mode::of(m);
            finish(odd::divide(1.0, source(a, m)), m)
        }),
        "sqrt" => pure!(|a: f32, m: u32| {
            let m = Mode::of(m);
            finish(odd::square_root(source(a, m)), m)
        }),
        _ => return None,
    })
}

/// Arithmetic of `f64` in the rounding of a mode, which is one more source where it is not to the nearest.
pub(crate) fn double(opcode: &str, mode: Mode) -> Option<Pure> {
    if mode.rounding == Rounding::Nearest {
        return Some(match opcode {
            "add" => pure!(|a: f64, b: f64| a + b),
            "sub" => pure!(|a: f64, b: f64| a - b),
            "mul" => pure!(|a: f64, b: f64| a * b),
            "div" => pure!(|a: f64, b: f64| a / b),
            "min" => pure!(|a: f64, b: f64| minimum(a, b, false)),
            "max" => pure!(|a: f64, b: f64| maximum(a, b, false)),
            "fma" => pure!(|a: f64, b: f64, c: f64| a.mul_add(b, c)),
            "neg" => pure!(|a: f64| -a),
            "abs" => pure!(|a: f64| a.abs()),
            "rcp" => pure!(|a: f64| 1.0 / a),
            "sqrt" => pure!(|a: f64| a.sqrt()),
            _ => return None,
        });
    }
    Some(match opcode {
        "add" => pure!(|a: f64, b: f64, m: u32| directed_sum(a, b, Mode::of(m).rounding)),
        "sub" => pure!(|a: f64, b: f64, m: u32| directed_sum(a, -b, Mode::of(m).rounding)),
        "mul" => pure!(|a: f64, b: f64, m: u32| {
            let product = a * b;
            directed(product, a.mul_add(b, -product), Mode::of(m).rounding)
        }),
        "div" => pure!(|a: f64, b: f64, m: u32| {
            let quotient = a / b;
            let rest = (-quotient).mul_add(b, a);
            directed(quotient, if b < 0.0 { -rest } else { rest }, Mode::of(m).rounding)
        }),
        "fma" => pure!(|a: f64, b: f64, c: f64, m: u32| {
            directed(a.mul_add(b, c), fma_error(a, b, c), Mode::of(m).rounding)
        }),
        "rcp" => pure!(|a: f64, m: u32| {
            let quotient = 1.0 / a;
            let rest = (-quotient).mul_add(a, 1.0);
            directed(quotient, if a < 0.0 { -rest } else { rest }, Mode::of(m).rounding)
        }),
        "sqrt" => pure!(|a: f64, m: u32| {
            let root = a.sqrt();
            directed(root, (-root).mul_add(root, a), Mode::of(m).rounding)
        }),
        _ => return None,
    })
}

fn directed_sum(a: f64, b: f64, rounding: Rounding) -> f64 {
    let sum = a + b;
    let part = sum - a;
    let error = (a - (sum - part)) + (b - part);
    if sum == 0.0 && error == 0.0 && rounding == Rounding::Down && a != b {
        return -0.0;
    }
    directed(sum, error, rounding)
}

/// The sign of `a·b + c` minus its rounded value, as a number with that sign.
fn fma_error(a: f64, b: f64, c: f64) -> f64 {
    let rounded = a.mul_add(b, c);
    let product = a * b;
    let low = a.mul_add(b, -product);
    let sum = product + c;
    let part = sum - product;
    let error = (product - (sum - part)) + (c - part);
    // `rounded` is close to `sum`, so that their difference is exact.
    (sum - rounded) + (error + low)
}

/// Moves a value that was rounded to the nearest to where a directed rounding puts it; `error` is the exact value minus it.
fn directed(rounded: f64, error: f64, rounding: Rounding) -> f64 {
    if rounded.is_infinite() && error.is_nan() || rounded.is_nan() || error == 0.0 {
        return rounded;
    }
    let down = match rounding {
        Rounding::Down => true,
        Rounding::Up => false,
        Rounding::Zero => rounded > 0.0 || rounded == 0.0 && error > 0.0,
        _ => return rounded,
    };
    match (down, error < 0.0) {
        (true, true) => rounded.next_down(),
        (false, false) => rounded.next_up(),
        _ => rounded,
    }
}

/// `copysign`: the sign of the first with the magnitude of the second.
pub(crate) fn copy_sign(double: bool) -> Pure {
    if double {
        pure!(|a: u64, b: u64| a & 1 << 63 | b & !(1 << 63))
    } else {
        pure!(|a: u32, b: u32| a & 1 << 31 | b & !(1 << 31))
    }
}

/// `testp`: whether a number belongs to a class.
pub(crate) fn test(class: &str, double: bool) -> Pure {
    macro_rules! tests {
        ($ty:ty) => {
            match class {
                "finite" => pure!(|a: $ty| a.is_finite()),
                "infinite" => pure!(|a: $ty| a.is_infinite()),
                "number" => pure!(|a: $ty| !a.is_nan()),
                "notanumber" => pure!(|a: $ty| a.is_nan()),
                "normal" => pure!(|a: $ty| a.is_normal()),
                _ => pure!(|a: $ty| a.is_subnormal()),
            }
        };
    }
    if double { tests!(f64) } else { tests!(f32) }
}

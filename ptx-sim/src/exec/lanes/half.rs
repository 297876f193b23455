//! Arithmetic of `f16`, `bf16` and pairs of them.
//!
//! The last source of each function is its [`Mode`]. Sums and products of two such numbers are exact in `f64` or rounded to odd
//! there, so that each result is rounded once.

use crate::exec::lanes::float::{maximum, minimum};
use crate::exec::lanes::mode::Mode;
use crate::exec::lanes::small::{BF16, F16, Rounding, bf16_value, f16_value, odd};
use crate::exec::lanes::{Pure, pure};

/// The value of a half; subnormal ones are zero if the mode flushes.
fn value(bits: u16, mode: Mode) -> f64 {
    if mode.brain {
        return f64::from(bf16_value(bits));
    }
    let value = f64::from(f16_value(bits));
    if mode.flush && bits & 0x7c00 == 0 { 0.0_f64.copysign(value) } else { value }
}

/// Rounds a result.
fn result(value: f64, mode: Mode) -> u16 {
    let value = if mode.relu { maximum(value, 0.0, true) } else { value };
    let value = if !mode.saturate {
        value
    } else if value > 0.0 {
        value.min(1.0)
    } else {
        0.0
    };
    let format = if mode.brain { BF16 } else { F16 };
    let bits = format.encode(value, Rounding::Nearest, false) as u16;
    if mode.flush && !mode.brain && bits & 0x7c00 == 0 { bits & 0x8000 } else { bits }
}

fn apply2(a: u16, b: u16, mode: Mode, f: impl Fn(f64, f64) -> f64) -> u16 {
    result(f(value(a, mode), value(b, mode)), mode)
}

fn apply2x2(a: u32, b: u32, mode: Mode, f: impl Fn(f64, f64) -> f64) -> u32 {
    let low = apply2(a as u16, b as u16, mode, &f);
    let high = apply2((a >> 16) as u16, (b >> 16) as u16, mode, &f);
    u32::from(high) << 16 | u32::from(low)
}

/// Instructions of two sources and a mode.
pub(crate) fn binary(opcode: &str, packed: bool) -> Option<Pure> {
    macro_rules! of {
        (|$a:ident, $b:ident, $m:ident| $body:expr) => {
            if packed {
                pure!(|a: u32, b: u32, m: u32| {
                    let $m = Mode::of(m);
                    apply2x2(a, b, $m, |$a, $b| $body)
                })
            } else {
                pure!(|a: u16, b: u16, m: u32| {
                    let $m = Mode::of(m);
                    apply2(a, b, $m, |$a, $b| $body)
                })
            }
        };
    }
    Some(match opcode {
        "add" => of!(|a, b, _m| odd::add(a, b)),
        "sub" => of!(|a, b, _m| odd::add(a, -b)),
        "mul" => of!(|a, b, _m| a * b),
        "min" => of!(|a, b, m| minimum(a, b, m.propagate)),
        "max" => of!(|a, b, m| maximum(a, b, m.propagate)),
        "min.xorsign" => of!(|a, b, m| xor_sign(a, b, minimum(a.abs(), b.abs(), m.propagate))),
        "max.xorsign" => of!(|a, b, m| xor_sign(a, b, maximum(a.abs(), b.abs(), m.propagate))),
        _ => return None,
    })
}

fn xor_sign(a: f64, b: f64, magnitude: f64) -> f64 {
    if a.is_sign_negative() == b.is_sign_negative() { magnitude } else { -magnitude }
}

/// `fma` of three sources and a mode.
pub(crate) fn multiply_add(packed: bool) -> Pure {
    fn one(a: u16, b: u16, c: u16, mode: Mode) -> u16 {
        result(odd::multiply_add(value(a, mode), value(b, mode), value(c, mode)), mode)
    }
    if !packed {
        return pure!(|a: u16, b: u16, c: u16, m: u32| one(a, b, c, Mode::of(m)));
    }
    pure!(|a: u32, b: u32, c: u32, m: u32| {
        let mode = Mode::of(m);
        let low = one(a as u16, b as u16, c as u16, mode);
        let high = one((a >> 16) as u16, (b >> 16) as u16, (c >> 16) as u16, mode);
        u32::from(high) << 16 | u32::from(low)
    })
}

fn apply1(a: u16, mode: Mode, f: impl Fn(f64) -> f64) -> u16 {
    result(f(value(a, mode)), mode)
}

fn apply1x2(a: u32, mode: Mode, f: impl Fn(f64) -> f64) -> u32 {
    let low = apply1(a as u16, mode, &f);
    let high = apply1((a >> 16) as u16, mode, &f);
    u32::from(high) << 16 | u32::from(low)
}

/// Instructions of one source and a mode. `ex2` and `tanh` are rounded from `f64`; the hardware approximates them.
pub(crate) fn unary(opcode: &str, packed: bool) -> Option<Pure> {
    macro_rules! of {
        ($f:expr) => {
            if packed {
                pure!(|a: u32, m: u32| apply1x2(a, Mode::of(m), $f))
            } else {
                pure!(|a: u16, m: u32| apply1(a, Mode::of(m), $f))
            }
        };
    }
    Some(match opcode {
        "neg" => of!(|a: f64| -a),
        "abs" => of!(f64::abs),
        "ex2" => of!(f64::exp2),
        "tanh" => of!(f64::tanh),
        _ => return None,
    })
}

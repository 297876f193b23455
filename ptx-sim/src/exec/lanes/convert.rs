//! Conversions between types.

use crate::exec::lanes::float::{canonical, flush, maximum, saturate};
use crate::exec::lanes::mode::Mode;
use crate::exec::lanes::small::{BF16, E4M3, E5M2, F16, F32, Format, Rounding, TF32, bf16_value, f16_value};
use crate::exec::lanes::{LaneValue, Pure, pure, with_integer};
use crate::isa::types::Type;

/// A pure function of a source `value: f64` of any floating-point type, and of a mode.
macro_rules! from_float {
    ($ty:expr, |$value:ident, $mode:ident| $body:expr) => {
        match $ty {
            Type::F64 => Some(pure!(|a: f64, m: u32| {
                let ($value, $mode) = (a, Mode::of(m));
                $body
            })),
            Type::F32 => Some(pure!(|a: f32, m: u32| {
                let $mode = Mode::of(m);
                let $value = f64::from(if $mode.flush { flush(a) } else { a });
                $body
            })),
            Type::F16 => Some(pure!(|a: u16, m: u32| {
                let ($value, $mode) = (f64::from(f16_value(a)), Mode::of(m));
                $body
            })),
            Type::Bf16 => Some(pure!(|a: u16, m: u32| {
                let ($value, $mode) = (f64::from(bf16_value(a)), Mode::of(m));
                $body
            })),
            _ => None,
        }
    };
}

/// Integers as targets of conversions.
trait Target: Copy {
    fn clamped(value: i128) -> Self;
    fn from_float(value: f64) -> Self;
}

macro_rules! targets {
    ($($ty:ty),*) => { $(
        impl Target for $ty {
            fn clamped(value: i128) -> $ty {
                value.clamp(<$ty>::MIN as i128, <$ty>::MAX as i128) as $ty
            }
            fn from_float(value: f64) -> $ty {
                // Clamps, and gives 0 for not a number.
                value as $ty
            }
        }
    )* };
}

targets!(u8, u16, u32, u64, i8, i16, i32, i64);

/// `cvt` between integers.
pub(crate) fn integers(to: Type, from: Type, saturates: bool) -> Option<Pure> {
    with_integer!(from, S => with_integer!(to, D => if saturates {
        pure!(|a: S| D::clamped(i128::from(a)))
    } else {
        pure!(|a: S| a as D)
    }))
    .flatten()
}

/// Rounds to an integral number.
fn integral(value: f64, rounding: Rounding) -> f64 {
    match rounding {
        Rounding::Nearest => value.round_ties_even(),
        Rounding::NearestAway => value.round(),
        Rounding::Zero => value.trunc(),
        Rounding::Down => value.floor(),
        Rounding::Up => value.ceil(),
    }
}

/// `cvt` from a floating-point number to an integer; the mode is the second source.
pub(crate) fn to_integer(to: Type, from: Type) -> Option<Pure> {
    with_integer!(to, D => from_float!(from, |value, mode| {
        D::from_float(integral(value, mode.rounding))
    }))
    .flatten()
}

/// `cvt` from an integer to a floating-point number; the mode is the second source.
pub(crate) fn from_integer(to: Type, from: Type) -> Option<Pure> {
    with_integer!(from, S => Some(match to {
        Type::F64 => pure!(|a: S, m: u32| {
            let near = a as f64;
            directed_double(near, i128::from(a), Mode::of(m).rounding)
        }),
        Type::F32 => pure!(|a: S, m: u32| {
            let mode = Mode::of(m);
            let value = f32::from_bits(F32.encode(odd_double(i128::from(a)), mode.rounding, false));
            if mode.saturate { saturate(value) } else { value }
        }),
        Type::F16 => pure!(|a: S, m: u32| {
            let mode = Mode::of(m);
            F16.encode(clamp01(odd_double(i128::from(a)), mode), mode.rounding, false)
        }),
        Type::Bf16 => pure!(|a: S, m: u32| {
            let mode = Mode::of(m);
            BF16.encode(odd_double(i128::from(a)), mode.rounding, false)
        }),
        _ => return None,
    }))
    .flatten()
}

/// An integer of at most 64 bits as `f64`, rounded to odd.
fn odd_double(value: i128) -> f64 {
    let near = value as f64;
    let error = value - near as i128;
    if error == 0 || near.to_bits() & 1 != 0 {
        near
    } else if (error > 0) == (near > 0.0) {
        f64::from_bits(near.to_bits() + 1)
    } else {
        f64::from_bits(near.to_bits() - 1)
    }
}

fn directed_double(near: f64, value: i128, rounding: Rounding) -> f64 {
    let error = value - near as i128;
    match rounding {
        Rounding::Down if error < 0 => near.next_down(),
        Rounding::Up if error > 0 => near.next_up(),
        Rounding::Zero if error < 0 && near > 0.0 => near.next_down(),
        Rounding::Zero if error > 0 && near < 0.0 => near.next_up(),
        _ => near,
    }
}

fn clamp01(value: f64, mode: Mode) -> f64 {
    if !mode.saturate {
        value
    } else if value > 0.0 {
        value.min(1.0)
    } else {
        0.0
    }
}

/// Applies `.relu` and `.sat` to a value before it is rounded.
fn limited(value: f64, mode: Mode) -> f64 {
    let value = if mode.relu && value.is_nan() {
        value
    } else if mode.relu {
        maximum(value, 0.0, false)
    } else {
        value
    };
    clamp01(value, mode)
}

/// `cvt` between floating-point types; the mode is the second source. With `to_integral`, values are rounded to integral ones
/// (`.rni` and the like), otherwise to the precision of the target.
pub(crate) fn floats(to: Type, from: Type, to_integral: bool) -> Option<Pure> {
    if to_integral {
        return match to {
            Type::F64 => {
                from_float!(from, |value, mode| clamp01(integral(value, mode.rounding), mode))
            }
            Type::F32 => from_float!(from, |value, mode| {
                canonical(clamp01(integral(value, mode.rounding), mode) as f32)
            }),
            Type::F16 => from_float!(from, |value, mode| {
                F16.encode(clamp01(integral(value, mode.rounding), mode), Rounding::Nearest, false)
            }),
            _ => None,
        };
    }
    match to {
        Type::F64 => from_float!(from, |value, mode| clamp01(value, mode)),
        Type::F32 => from_float!(from, |value, mode| {
            let rounded = f32::from_bits(F32.encode(clamp01(value, mode), mode.rounding, false));
            if mode.flush { flush(rounded) } else { rounded }
        }),
        Type::F16 => {
            from_float!(from, |value, mode| F16.encode(limited(value, mode), mode.rounding, mode.finite))
        }
        Type::Bf16 => {
            from_float!(from, |value, mode| BF16.encode(limited(value, mode), mode.rounding, mode.finite))
        }
        Type::Tf32 if from == Type::F32 => Some(pure!(|bits: u32, m: u32| to_tf32(bits, Mode::of(m)))),
        _ => None,
    }
}

/// `cvt` of the bits of an `f32` to those of a `tf32`. A NaN keeps its sign and the upper part of its payload, as an H100 leaves them.
fn to_tf32(bits: u32, mode: Mode) -> u32 {
    let value = f64::from(f32::from_bits(bits));
    if value.is_nan() {
        return bits & !0x1fff;
    }
    TF32.encode(limited(value, mode), mode.rounding, mode.finite) << 13
}

/// `cvt` of two `f32` to a packed type, the first to the upper half; the mode is the third source.
pub(crate) fn pack(to: Type) -> Option<Pure> {
    Some(match to {
        Type::F16x2 => pure!(|a: f32, b: f32, m: u32| two(F16, a, b, Mode::of(m), 16)),
        Type::Bf16x2 => pure!(|a: f32, b: f32, m: u32| two(BF16, a, b, Mode::of(m), 16)),
        Type::E4m3x2 => pure!(|a: f32, b: f32, m: u32| two(E4M3, a, b, Mode::of(m), 8)),
        Type::E5m2x2 => pure!(|a: f32, b: f32, m: u32| two(E5M2, a, b, Mode::of(m), 8)),
        _ => return None,
    })
}

fn two(format: Format, a: f32, b: f32, mode: Mode, width: u32) -> u32 {
    let one = |value: f32| {
        let value = if mode.flush { flush(value) } else { value };
        format.encode(limited(f64::from(value), mode), mode.rounding, mode.finite)
    };
    one(a) << width | one(b)
}

/// `cvt` between packed types of two values; the mode is the second source.
pub(crate) fn repack(to: Type, from: Type) -> Option<Pure> {
    Some(match (to, from) {
        (Type::E4m3x2, Type::F16x2) => pure!(|a: u32, m: u32| narrow(E4M3, a, Mode::of(m))),
        (Type::E5m2x2, Type::F16x2) => pure!(|a: u32, m: u32| narrow(E5M2, a, Mode::of(m))),
        (Type::F16x2, Type::E4m3x2) => pure!(|a: u32, m: u32| widen(E4M3, a, Mode::of(m))),
        (Type::F16x2, Type::E5m2x2) => pure!(|a: u32, m: u32| widen(E5M2, a, Mode::of(m))),
        _ => return None,
    })
}

fn narrow(format: Format, a: u32, mode: Mode) -> u32 {
    let one = |half: u16| format.encode(limited(f64::from(f16_value(half)), mode), mode.rounding, true);
    one((a >> 16) as u16) << 8 | one(a as u16)
}

fn widen(format: Format, a: u32, mode: Mode) -> u32 {
    let one = |byte: u32| F16.encode(limited(format.decode(byte & 255), mode), Rounding::Nearest, false);
    one(a >> 8) << 16 | one(a)
}

/// `cvt.pack.sat`: two `s32` clamped to a narrow type; with `c` shifted above them for types of eight bits or fewer.
pub(crate) fn pack_integers(to: Type, with_third: bool) -> Option<Pure> {
    macro_rules! packs {
        ($ty:ty, $bits:literal) => {
            if with_third {
                pure!(|a: i32, b: i32, c: u32| {
                    let low = <$ty as Target>::clamped(i128::from(b)).bits() as u32;
                    let high = <$ty as Target>::clamped(i128::from(a)).bits() as u32;
                    (u64::from(c) << (2 * $bits)) as u32 | high << $bits | low
                })
            } else {
                pure!(|a: i32, b: i32| {
                    let low = <$ty as Target>::clamped(i128::from(b)).bits() as u32;
                    let high = <$ty as Target>::clamped(i128::from(a)).bits() as u32;
                    high << $bits | low
                })
            }
        };
    }
    Some(match (to, with_third) {
        (Type::U16, false) => packs!(u16, 16),
        (Type::S16, false) => packs!(i16, 16),
        (Type::U8, true) => packs!(u8, 8),
        (Type::S8, true) => packs!(i8, 8),
        _ => return None,
    })
}

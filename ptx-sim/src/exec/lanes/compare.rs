//! Comparisons: pure functions with a result of one bit.

use crate::exec::lanes::float::flush;
use crate::exec::lanes::small::{bf16_value, f16_value};
use crate::exec::lanes::{Pure, pure, with_integer};
use crate::isa::types::Type;

/// The comparisons of floating-point numbers: ordered ones are false, unordered ones true where one is not a number.
macro_rules! of_floats {
    ($cmp:expr, $ty:ty, |$raw:ident| $value:expr) => {{
        fn get($raw: $ty) -> f64 {
            $value
        }
        Some(match $cmp {
            "eq" => pure!(|a: $ty, b: $ty| get(a) == get(b)),
            "ne" => pure!(|a: $ty, b: $ty| get(a) < get(b) || get(a) > get(b)),
            "lt" => pure!(|a: $ty, b: $ty| get(a) < get(b)),
            "le" => pure!(|a: $ty, b: $ty| get(a) <= get(b)),
            "gt" => pure!(|a: $ty, b: $ty| get(a) > get(b)),
            "ge" => pure!(|a: $ty, b: $ty| get(a) >= get(b)),
            "equ" => pure!(|a: $ty, b: $ty| get(a) == get(b) || neither(get(a), get(b))),
            "neu" => pure!(|a: $ty, b: $ty| get(a) != get(b)),
            "ltu" => pure!(|a: $ty, b: $ty| get(a) < get(b) || neither(get(a), get(b))),
            "leu" => pure!(|a: $ty, b: $ty| get(a) <= get(b) || neither(get(a), get(b))),
            "gtu" => pure!(|a: $ty, b: $ty| get(a) > get(b) || neither(get(a), get(b))),
            "geu" => pure!(|a: $ty, b: $ty| get(a) >= get(b) || neither(get(a), get(b))),
            "num" => pure!(|a: $ty, b: $ty| !neither(get(a), get(b))),
            "nan" => pure!(|a: $ty, b: $ty| neither(get(a), get(b))),
            _ => return None,
        })
    }};
}

/// Whether there is no order between two values.
#[inline(always)]
fn neither(a: f64, b: f64) -> bool {
    a.is_nan() || b.is_nan()
}

/// Of `f32`.
pub(crate) fn singles(cmp: &str) -> Option<Pure> {
    of_floats!(cmp, f32, |raw| f64::from(raw))
}

/// Of `f32` with subnormal numbers flushed to zero.
pub(crate) fn flushed(cmp: &str) -> Option<Pure> {
    of_floats!(cmp, f32, |raw| f64::from(flush(raw)))
}

/// Of `f64`.
pub(crate) fn doubles(cmp: &str) -> Option<Pure> {
    of_floats!(cmp, f64, |raw| raw)
}

/// Of halves in the low 16 bits.
pub(crate) fn low(cmp: &str, brain: bool) -> Option<Pure> {
    if brain {
        of_floats!(cmp, u16, |raw| f64::from(bf16_value(raw)))
    } else {
        of_floats!(cmp, u16, |raw| f64::from(f16_value(raw)))
    }
}

/// Of halves in the upper 16 of 32 bits.
pub(crate) fn high(cmp: &str, brain: bool) -> Option<Pure> {
    if brain {
        of_floats!(cmp, u32, |raw| f64::from(bf16_value((raw >> 16) as u16)))
    } else {
        of_floats!(cmp, u32, |raw| f64::from(f16_value((raw >> 16) as u16)))
    }
}

/// Of integers; bits count as unsigned.
pub(crate) fn integers(cmp: &str, ty: Type) -> Option<Pure> {
    if matches!(cmp, "lo" | "ls" | "hi" | "hs") && ty.is_signed() {
        return None;
    }
    with_integer!(ty, T => Some(match cmp {
        "eq" => pure!(|a: T, b: T| a == b),
        "ne" => pure!(|a: T, b: T| a != b),
        "lt" | "lo" => pure!(|a: T, b: T| a < b),
        "le" | "ls" => pure!(|a: T, b: T| a <= b),
        "gt" | "hi" => pure!(|a: T, b: T| a > b),
        "ge" | "hs" => pure!(|a: T, b: T| a >= b),
        _ => return None,
    }))
    .flatten()
}

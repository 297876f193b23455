//! Instructions that the hardware approximates.
//!
//! The values here are computed in `f64` and rounded once, so that they are within half a unit in the last place of the true
//! value. Hardware differs from that by the bounds of the PTX manual: one unit for `rcp`, two for `div`, `2^-22.9` relative for
//! `rsqrt`, `2^-20.5` absolute for `sin` and `cos`, `2^-22` for `lg2`, `2^-22.5` relative for `ex2`, `2^-11` for `tanh`. Special
//! values (zeros, infinities, not a number, flushed subnormals) are those of the manual.

use crate::exec::lanes::float::{canonical, flush};
use crate::exec::lanes::{Pure, pure};

/// An approximate instruction of one `f32`.
pub(crate) fn single(opcode: &str, flushes: bool) -> Option<Pure> {
    macro_rules! of {
        ($f:expr) => {
            if flushes {
                pure!(|a: f32| canonical(flush($f(f64::from(flush(a))) as f32)))
            } else {
                pure!(|a: f32| canonical($f(f64::from(a)) as f32))
            }
        };
    }
    Some(match opcode {
        "rcp" => of!(|a: f64| 1.0 / a),
        "sqrt" => of!(f64::sqrt),
        "rsqrt" => of!(|a: f64| 1.0 / a.sqrt()),
        "sin" => of!(f64::sin),
        "cos" => of!(f64::cos),
        "lg2" => of!(f64::log2),
        "ex2" => of!(f64::exp2),
        "tanh" => of!(f64::tanh),
        _ => return None,
    })
}

/// `div.approx` and `div.full`.
pub(crate) fn divide(flushes: bool) -> Pure {
    if flushes {
        pure!(|a: f32, b: f32| canonical(flush((f64::from(flush(a)) / f64::from(flush(b))) as f32)))
    } else {
        pure!(|a: f32, b: f32| canonical((f64::from(a) / f64::from(b)) as f32))
    }
}

/// `rcp.approx.ftz.f64` and `rsqrt.approx.f64`: only the upper 32 bits of the result are given.
pub(crate) fn double(opcode: &str) -> Option<Pure> {
    Some(match opcode {
        "rcp" => pure!(|a: f64| upper(1.0 / a)),
        "rsqrt" => pure!(|a: f64| upper(1.0 / a.sqrt())),
        "rsqrt.full" => pure!(|a: f64| 1.0 / a.sqrt()),
        _ => return None,
    })
}

fn upper(value: f64) -> f64 {
    f64::from_bits(value.to_bits() & 0xffff_ffff_0000_0000)
}
